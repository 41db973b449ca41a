"""Kernel arguments in host memory: values, tensor maps, and the void*[] that CUDA reads them by.

Tensor maps are as cuTensorMapEncodeTiled wants them, innermost dimension first. The simulator's own
form is in `tools/sim/job_file.py`; what is allowed at all was checked by
`kernels/plan_limits.py`. Source of the numbers: cuda.h, CUtensorMapDataType and the enums
behind it.
"""

import ctypes
import struct
from collections.abc import Mapping, Sequence
from math import prod

from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.plan import Argument, ArgumentKind, TensorMap

from .driver_launch import TENSOR_MAP_BYTES, TiledMap, encode_tiled

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


_UINT8, _UINT16 = 0, 1
_DTYPES = {
    "bool": _UINT8,
    "uint8": _UINT8,
    "int8": _UINT8,
    "float8_e4m3fn": _UINT8,
    "float8_e5m2": _UINT8,
    "int16": _UINT16,
    "uint32": 2,
    "int32": 3,
    "int64": 5,
    "float16": 6,
    "float32": 7,
    "float64": 8,
    "bfloat16": 9,
}
"""CUtensorMapDataType; a copy only needs the width where the fill is zero."""
_INTERLEAVES = {"none": 0, "16": 1, "32": 2}
_SWIZZLES = {"none": 0, "32": 1, "64": 2, "128": 3}
_L2_PROMOTIONS = {"none": 0, "64": 1, "128": 2, "256": 3}
_FILLS = {"zero": 0, "nan": 1}


def tiled_map(entry: TensorMap, dtype: str) -> TiledMap:
    """Return the driver's arguments for `entry` over a dense buffer of `dtype`."""
    extents = tuple(reversed(entry.view))
    item_bytes = dtype_size_bytes(dtype)
    return TiledMap(
        dtype=_DTYPES[dtype],
        extents=extents,
        strides_bytes=tuple(item_bytes * prod(extents[:axis]) for axis in range(1, len(extents))),
        box=tuple(reversed(entry.box)),
        element_strides=tuple(reversed(entry.element_strides)),
        interleave=_INTERLEAVES[entry.interleave],
        swizzle=_SWIZZLES[entry.swizzle],
        l2_promotion=_L2_PROMOTIONS[entry.l2],
        fill=_FILLS[entry.fill],
    )


def encode_descriptor(tiled: TiledMap, address: int) -> bytes:
    """Return the 128 bytes of the CUtensorMap of `tiled` over device memory at `address`.

    Raises:
        CudaError: The driver refuses the map.
    """
    room = ctypes.create_string_buffer(2 * TENSOR_MAP_BYTES)
    start = ctypes.addressof(room)
    aligned = -(-start // TENSOR_MAP_BYTES) * TENSOR_MAP_BYTES
    encode_tiled(tiled, address, aligned)
    return room.raw[aligned - start :][:TENSOR_MAP_BYTES]
