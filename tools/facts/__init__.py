"""Results and kernels as facts that fit a model's context, and these as text."""
