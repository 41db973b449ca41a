"""From the operators of a graph to CUDA kernels, one file per template; nothing imports torch."""
