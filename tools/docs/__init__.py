"""Search over documents that help to write kernels."""
