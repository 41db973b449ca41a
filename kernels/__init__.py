"""What is optimised: problems, candidates, launch plans, records and shared CUDA headers."""
