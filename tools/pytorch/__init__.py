"""PyTorch functions as problems: export, shapes, oracle with an error budget, first CUDA kernel."""
