"""Kernel arguments in host memory: the values, and the void*[] through which CUDA reads them."""

import ctypes
import struct
from collections.abc import Mapping, Sequence

from kopt.kernels.plan import Argument, ArgumentKind

_SLOT_BYTES = 128
"""Room and alignment of one value; a tensor map, the largest and strictest, needs both."""
_FORMATS: dict[ArgumentKind, str] = {
    "tensor": "<Q",
    "scratch": "<Q",
    "int32": "<i",
    "int64": "<q",
    "float32": "<f",
}


def argument_bytes(
    argument: Argument, addresses: Mapping[str, int], tensor_maps: Mapping[str, bytes]
) -> bytes:
    """Return the bytes of one argument as the kernel receives it.

    Args:
        argument: From a launch plan.
        addresses: Device address of every tensor and scratch buffer.
        tensor_maps: Encoded CUtensorMap of every tensor map of the plan.
    """
    if argument.kind == "tensor_map":
        return tensor_maps[argument.name]
    if argument.kind in ("tensor", "scratch"):
        return struct.pack(_FORMATS[argument.kind], addresses[argument.name])
    if argument.value is None:
        raise ValueError(f"the {argument.kind} argument {argument.name} has no value")
    return struct.pack(_FORMATS[argument.kind], argument.value)


class ArgumentBlock:
    """The arguments of one launch; lives as long as launches are made with `address`."""

    def __init__(self, values: Sequence[bytes]) -> None:
        """Copy `values`, by position, each to a place that its alignment allows."""
        sizes = [-(-len(value) // _SLOT_BYTES) * _SLOT_BYTES for value in values]
        self._values = ctypes.create_string_buffer(sum(sizes) + _SLOT_BYTES)
        self._pointers = (ctypes.c_void_p * max(len(values), 1))()
        start = ctypes.addressof(self._values)
        place = -(-start // _SLOT_BYTES) * _SLOT_BYTES
        for ordinal, (value, size) in enumerate(zip(values, sizes, strict=True)):
            ctypes.memmove(place, value, len(value))
            self._pointers[ordinal] = place
            place += size

    @property
    def address(self) -> int:
        """Host address of the void*[]."""
        return ctypes.addressof(self._pointers)
