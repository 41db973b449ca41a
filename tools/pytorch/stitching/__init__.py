"""Kernels of the parts of a network put together to one candidate for the whole of it."""
