"""All rows of a large timed shape, of which a check judges some (tools/check/judged_rows.py).

What may be coarse need not be asked of the oracle: the outputs of the problem's reference kernel on
the same inputs, and those of other timed calls, say of every row what it must about be. A kernel
that leaves rows out, or columns of them, is far from that.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.oracle import Arrays
from kopt.kernels.record import Diagnostic
from kopt.kernels.wide_work import run_wide, slices
from kopt.tools.check.case_data import CaseData
from kopt.tools.check.judged_rows import JudgedRows

from .timed_case import Verified

BLOCK = 256
"""Consecutive elements of a row that are compared together: columns may differ much in size."""
FARTHEST = 0.02
"""Share of a block's root mean square by which it may be off: honest roundings of 16 bits stay
below 1 %; products of fp8 operands, 4 % off, are beyond it, and a block without one of its
elements."""
ROUNDINGS = 4.0
"""Times the slack of the judged rows, by which a block may be off besides: where terms cancel, what
is left is roundings alone."""
MOST_INTEGERS, FEW_INTEGERS = 0.01, 4
"""Share of a tensor of integers that may differ, and how many in any: places of equal values, as of
a maximum."""
_PART_ELEMENTS = 1 << 20


def disagreement(candidate: Verified, witness: Verified) -> Diagnostic | None:
    """Return that rows which were not judged are not about those of the reference kernel.

    None where they are, and where the candidate is that kernel.
    """
    if candidate is witness:
        return None
    for own, other in zip(candidate.draws, witness.draws, strict=True):
        if far_rows(own.data, own.outputs, other.outputs):
            return Diagnostic(
                message="rows that the oracle did not judge are far from those of the reference"
                " kernel on the same inputs",
                hint="every row must be computed from its own inputs",
            )
    return None


def far_rows(data: CaseData, outputs: Arrays, others: Arrays) -> bool:
    """Return whether some row of an output is far from that of another call on the same inputs.

    False where every row is judged by the oracle.
    """
    if data.judged is None:
        return False
    return any(_is_far(data, data.judged, name, outputs[name], others[name]) for name in outputs)


def _is_far(
    data: CaseData,
    judged: JudgedRows,
    name: str,
    output: npt.NDArray[Any],
    other: npt.NDArray[Any],
) -> bool:
    place = judged.places[name]
    one, two = (np.moveaxis(array, place, 0) for array in (output, other))
    rows, columns = one.shape[0], max(one.size // max(one.shape[0], 1), 1)
    parts = slices(rows, _PART_ELEMENTS // columns)
    if one.dtype.kind in "biu":
        differing = sum(run_wide(lambda part: int(np.sum(one[part] != two[part])), parts))
        return differing > max(FEW_INTEGERS, MOST_INTEGERS * one.size)
    honest = ROUNDINGS * _size_of_slack(data, name)

    def is_far(part: slice) -> bool:
        got, wanted = (_wide(array[part], columns) for array in (one, two))
        with np.errstate(invalid="ignore"):
            error = np.where(got == wanted, 0.0, got - wanted)  # of equal infinities, too
        size = np.where(np.isfinite(wanted), wanted, 0.0)
        unit = max(float(np.abs(size).max(initial=0.0)), 1.0)  # whose square may be infinite
        off, whole = (_size_of_blocks(values / unit) for values in (error, size))
        # Not `>`: the error of an infinity may be NaN.
        return not bool((off <= FARTHEST * whole + honest / unit).all())

    return any(run_wide(is_far, parts))


def _size_of_blocks(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the root mean square of each block of each row."""
    starts: npt.NDArray[np.int64] = np.arange(0, values.shape[1], BLOCK, dtype=np.int64)
    counts: npt.NDArray[np.int64] = np.diff(starts, append=values.shape[1])
    with np.errstate(over="ignore"):
        sums: npt.NDArray[np.float64] = np.add.reduceat(np.square(values), starts, axis=1)
    return np.asarray(np.sqrt(sums / counts))


def _wide(rows: npt.NDArray[Any], columns: int) -> npt.NDArray[np.float64]:
    """Return rows of any floating-point dtype in float64, columns last."""
    exact = rows if rows.dtype == np.float64 else rows.astype(np.float32)
    return np.asarray(exact, dtype=np.float64).reshape(-1, columns)


def _size_of_slack(data: CaseData, name: str) -> float:
    """Return the root mean square of what roundings may do to an element; 0.0 without slack."""
    slack = data.references[name].slack
    finite = np.zeros(1) if slack is None else slack[np.isfinite(slack)].astype(np.float64)
    return float(np.sqrt(np.square(finite).mean())) if finite.size else 0.0
