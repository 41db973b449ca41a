"""What the tests of the worker's core share."""

from support.host_cuda import host_cuda
from support.host_timing import host_timing

__all__ = ["host_cuda", "host_timing"]
