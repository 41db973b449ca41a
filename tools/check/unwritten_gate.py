"""Elements that were never written: they hold the poison after two runs under different poisons.

One run cannot tell: the right answer may happen to equal the poison. The same inputs give the same
right answer twice, so an element that follows the poison was not written.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from .number_formats import poison_bits, storage_bits
from .output import Finding, Output, finding_in_row
from .reference import Reference

_OLD_BYTES = "the bytes that the buffer held before the launch"
POISONS = (0xFF, 0x55)
"""0xFF bytes are NaN in every float format, 0x55 a large positive number: one spoils sums, the
other a maximum, which drops NaN."""


def other_poison(poison: int) -> int:
    """Return the pattern of `POISONS` that `poison` is not."""
    return POISONS[1] if poison == POISONS[0] else POISONS[0]


def holds_poison(array: npt.NDArray[Any], poison: int) -> npt.NDArray[np.bool_]:
    """Return for each stored element (flat) whether all its bytes are `poison`."""
    bits = storage_bits(array)
    held: npt.NDArray[np.bool_] = bits == poison_bits(bits.dtype, poison)
    return held


def unwritten_gate(output: Output, runs: Sequence[tuple[npt.NDArray[Any], int]]) -> Finding | None:
    """Refuse elements of a pure output, of the first run, that hold the poison of every run.

    Each run has the tensor as it left it, and its poison; the same inputs in all.
    """
    reference, stored = output.reference, _held_in_all(runs)
    if output.judged is not None:  # whole tensors, of which all elements are written
        whole = runs[0][0]
        if not stored.size:
            return None
        row = output.judged.row_of(output.name, int(stored[0]), whole.shape)
        note = "no thread writes elements"
        return finding_in_row(output, "unwritten", row, _OLD_BYTES, note)
    if reference.written is not None:
        stored = stored[reference.written[stored]]
    if not stored.size:
        return None
    wrong = _logical(reference, stored)
    return Finding(
        gate="unwritten",
        output=output,
        wrong=wrong,
        shown=int(wrong[0]),
        expected="a value",
        got=_OLD_BYTES,
        note="these elements keep the fill pattern of the buffer in two runs with different"
        " patterns: no thread writes them",
    )


def _held_in_all(runs: Sequence[tuple[npt.NDArray[Any], int]]) -> npt.NDArray[np.int64]:
    """Return the stored elements that hold the poison of every run; few do of the first already."""
    (array, poison), *others = runs
    stored: npt.NDArray[np.int64] = np.flatnonzero(holds_poison(array, poison))
    for array, poison in others:
        stored = stored[holds_poison(storage_bits(array)[stored], poison)]
    return stored


def _logical(reference: Reference, stored: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return the logical indices of stored elements; both codes of a packed byte."""
    if reference.offsets is not None:
        held = np.zeros(reference.bits.size, dtype=np.bool_)
        held[stored] = True
        return np.flatnonzero(held[reference.offsets])
    if reference.exact.size == 2 * reference.bits.size:
        return (2 * stored[:, None] + np.arange(2)).reshape(-1)
    return stored
