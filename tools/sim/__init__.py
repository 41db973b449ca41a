"""The CPU simulator: a candidate's device code run on the host, one fiber per CUDA thread."""
