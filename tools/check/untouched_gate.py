"""Bytes that a candidate must leave alone: layout padding, masked rows, the rest of an inout."""

from typing import Any

import numpy as np
import numpy.typing as npt

from .number_formats import storage_bits
from .output import Finding, Output


def untouched_gate(output: Output, poison: int, before: npt.NDArray[Any] | None) -> Finding | None:
    """Refuse changes outside the `written` mask.

    Args:
        output: The candidate's tensor.
        poison: Byte that filled the tensor before the launch, if it is a pure output.
        before: What an inout tensor held before the launch; None for a pure output.
    """
    written = output.reference.written
    if written is None:
        return None
    size = output.bits.dtype.itemsize
    poisoned = output.bits.dtype.type(int.from_bytes(bytes([poison]) * size, "little"))
    old = poisoned if before is None else storage_bits(before)
    wrong = np.flatnonzero((output.bits != old) & ~written)
    if not wrong.size:
        return None
    kept = poisoned if before is None else storage_bits(before)[wrong[0]]
    return Finding(
        gate="untouched",
        tensor=output.name,
        wrong=wrong,
        expected=f"unchanged bytes 0x{int(kept):0{2 * size}X}",
        got=f"0x{int(output.bits[wrong[0]]):0{2 * size}X}",
        note="elements outside the result (padding, masked rows) must keep the bytes they had; "
        "the index counts stored elements",
    )
