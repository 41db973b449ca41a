"""A user's PyTorch function made a problem folder; the user's Python runs in a sandboxed child."""
