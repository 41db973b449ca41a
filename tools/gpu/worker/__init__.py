"""What runs inside a GPU worker process: the only code of kopt that creates a CUDA context."""
