"""The simulator's own form of a TMA descriptor, in the 128 bytes that CUtensorMap has.

<kopt/bulk_copy.cuh> reads it in its CPU body. Layout, little-endian: base address u64, rank u8,
element bytes u8, swizzle bytes u8, fill u8 (1 = NaN), 4 bytes of padding, then five each, innermost
dimension first: extents u32, padding u32, strides in bytes u64, box u32, element strides u32.
"""

import struct
from math import prod

from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.plan import TensorMap

# Where runtime/job.cpp maps the buffers (state.h: kArena, kSlotBits, kSlotLead).
_ARENA = 0x200000000000
_SLOT_BITS = 36
_SLOT_LEAD = 1 << 32


def encode_tensor_map(tensor_map: TensorMap, buffer_number: int, dtype: str) -> bytes:
    """Return the 128 bytes for a tensor that is the job's `buffer_number`-th buffer."""
    item_bytes = dtype_size_bytes(dtype)
    extents = tuple(reversed(tensor_map.view))
    strides = tuple(item_bytes * prod(extents[:axis]) for axis in range(len(extents)))
    swizzle = 0 if tensor_map.swizzle == "none" else int(tensor_map.swizzle)
    base = _ARENA + (buffer_number << _SLOT_BITS) + _SLOT_LEAD
    head = struct.pack(
        "<QBBBB4x", base, len(extents), item_bytes, swizzle, int(tensor_map.fill == "nan")
    )
    body = _five("I", extents) + b"\0" * 4 + _five("Q", strides)
    body += _five("I", tuple(reversed(tensor_map.box)))
    body += _five("I", tuple(reversed(tensor_map.element_strides)))
    return (head + body).ljust(128, b"\0")


def _five(code: str, values: tuple[int, ...]) -> bytes:
    return struct.pack(f"<5{code}", *[*values, *[1] * (5 - len(values))])
