"""What the tests of the worker's core share."""

from support.host_cuda import host_cuda

__all__ = ["host_cuda"]
