"""Page-locked host memory as a numpy array: what copies to and from the device run fastest with."""

import ctypes

import numpy as np

from .buffer_layout import Bytes
from .driver import call


class PinnedBytes:
    """Bytes that stay in physical memory until `close`; nobody may use `array` after it."""

    def __init__(self, size_bytes: int) -> None:
        """Allocate; contents are undefined.

        Raises:
            CudaError: The host has not enough memory to lock.
        """
        self._address = int(call("cuMemAllocHost", size_bytes))
        memory = (ctypes.c_uint8 * size_bytes).from_address(self._address)
        self.array: Bytes = np.frombuffer(memoryview(memory), dtype=np.uint8)

    def close(self) -> None:
        """Give the memory back."""
        if self._address:
            address, self._address = self._address, 0
            call("cuMemFreeHost", address)
