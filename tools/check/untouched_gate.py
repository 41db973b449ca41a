"""Bytes that a candidate must leave alone: layout padding, masked rows, the rest of an inout."""

from typing import Any

import numpy as np
import numpy.typing as npt

from .output import Finding, Output


def untouched_gate(output: Output, initial: npt.NDArray[Any]) -> Finding | None:
    """Refuse changes outside the `written` mask.

    Args:
        output: The candidate's tensor.
        initial: What each stored element held before the launch (`output.initial_bits`).
    """
    written = output.reference.written
    if written is None:
        return None
    wrong = np.flatnonzero((output.bits != initial) & ~written)
    if not wrong.size:
        return None
    digits = 2 * output.bits.dtype.itemsize
    return Finding(
        gate="untouched",
        tensor=output.name,
        wrong=wrong,
        expected=f"unchanged bytes 0x{int(initial[wrong[0]]):0{digits}X}",
        got=f"0x{int(output.bits[wrong[0]]):0{digits}X}",
        note="elements outside the result (padding, masked rows) must keep the bytes they had;"
        " the index counts stored elements",
    )
