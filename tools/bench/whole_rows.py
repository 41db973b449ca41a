"""All rows of a large timed shape, of which a check judges some (tools/check/judged_rows.py).

What may be coarse need not be asked of the oracle: the outputs of the problem's reference kernel on
the same inputs, and those of other timed calls, say of every row what it must about be. A kernel
that leaves rows out, or columns of them, is far from that.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.record import Diagnostic
from kopt.kernels.wide_work import run_wide, slices
from kopt.tools.check.case_data import CaseData
from kopt.tools.check.judged_rows import JudgedRows

from .timed_case import Verified

Arrays = Mapping[str, npt.NDArray[Any]]

FARTHEST = 0.1
"""Share of a row's root mean square by which it may be off: honest roundings of 16 bits stay below
1 %, a row without a fiftieth of its columns is beyond it."""
ROUNDINGS = 4.0
"""Times the slack of the judged rows, by which a row may be off besides: where terms cancel, what
is left is roundings alone."""
FEW_INTEGERS = 0.01
"""Share of a tensor of integers that may differ: places of equal values, as of a maximum."""
_PART_ELEMENTS = 1 << 20


def disagreement(candidate: Verified, witness: Verified) -> Diagnostic | None:
    """Return that rows which were not judged are not about those of the reference kernel."""
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
        return differing > FEW_INTEGERS * one.size
    slack = data.references[name].slack
    honest = 0.0 if slack is None else float(np.sqrt(np.mean(np.square(slack, dtype=np.float64))))

    def is_far(part: slice) -> bool:
        got, wanted = (
            array[part].astype(np.float32).reshape(-1, columns).astype(np.float64)
            for array in (one, two)
        )
        error, size = (np.sqrt(np.square(v).mean(axis=1)) for v in (got - wanted, wanted))
        # Not `>`: the error of an infinity may be NaN.
        return not bool((error <= FARTHEST * size + ROUNDINGS * honest).all())

    return any(run_wide(is_far, parts))
