"""CUDA toolchain: discovery, compiling to cubins, and what a cubin tells."""
