"""What the wrong values look like: swapped nibbles, a shifted row, zeros, the old contents.

Each symptom names a likely cause for the candidate's author. A guess from values, never a gate: it
is offered only where most wrong elements fit and the fit cannot be chance.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from .number_formats import E2M1
from .output import Finding, Output

_SAMPLE = 4096
_MOST = 0.9
_ENOUGH = 8  # wrong elements below which a fit says nothing


def likely_cause(output: Output, finding: Finding, initial: npt.NDArray[Any]) -> str | None:
    """Return a sentence on the likely cause, or None when nothing fits.

    Args:
        output: The refused tensor.
        finding: What was refused.
        initial: What each stored element held before the launch (`output.initial_bits`).
    """
    if finding.gate in ("untouched", "unwritten", "row_l2", "total_l2"):
        return None
    wrong = finding.wrong[:_SAMPLE]
    place = output.storage_index(wrong)
    if (output.bits[place] == initial[place]).mean() >= _MOST:
        return "the wrong elements hold what was there before the launch: nothing wrote them"
    if wrong.size < _ENOUGH:
        return None
    got = output.bits_at(wrong)
    if np.isfinite(output.values_at(wrong)).all() and not output.values_at(wrong).any():
        return "the wrong elements are all 0"
    if output.reference.number_format == E2M1 and _fits(output, wrong, got, wrong ^ 1):
        return "each wrong code is its neighbour's: the two nibbles of a byte are swapped"
    return _shift(output, wrong, got)


def _shift(
    output: Output, wrong: npt.NDArray[np.int64], got: npt.NDArray[np.unsignedinteger]
) -> str | None:
    """Return the sentence for values that belong some elements or one row away."""
    columns = output.reference.columns
    for distance, what in (
        (columns, "the next row"),
        (-columns, "the previous row"),
        (1, "the next column"),
        (-1, "the previous column"),
    ):
        if _fits(output, wrong, got, wrong + distance):
            return f"the wrong elements hold what belongs to {what}: an index is off by one"
    return None


def _fits(
    output: Output,
    wrong: npt.NDArray[np.int64],
    got: npt.NDArray[np.unsignedinteger],
    source: npt.NDArray[np.int64],
) -> bool:
    """Return whether most wrong elements equal what is expected at `source`, and it varies."""
    inside = (source >= 0) & (source < output.reference.exact.size)
    if inside.sum() < _ENOUGH:
        return False
    there = output.expected_bits_at(source[inside])
    here = output.expected_bits_at(wrong[inside])
    moved = there != here
    return bool(moved.any() and (there[moved] == got[inside][moved]).mean() >= _MOST)
