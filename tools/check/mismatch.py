"""From a gate's finding to the record that a candidate's author reads."""

from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.check_result import Mismatch
from kopt.kernels.record import Diagnostic

from .cases import InputCase
from .output import Finding, Output
from .pattern import describe_pattern
from .symptoms import likely_cause


def make_mismatch(output: Output, finding: Finding, case: InputCase) -> Mismatch:
    """Return where and how `output` is wrong.

    The index is logical, of `exact`'s shape, and row and column split it at the row axis. For
    `untouched` all three count stored elements, for padding has no logical place.
    """
    if finding.gate == "untouched":
        shape = output.array.shape or (1,)
        total, rows = output.bits.size, output.bits.size // shape[-1]
    else:
        shape = output.reference.shape or (1,)
        total, rows = output.reference.exact.size, output.reference.rows
    columns = total // max(rows, 1)
    index = tuple(int(part) for part in np.unravel_index(finding.shown, shape))
    return Mismatch(
        workload=case.workload.name,
        tensor=output.name,
        gate=finding.gate,
        index=index,
        row=finding.shown // columns,
        column=finding.shown % columns,
        expected=finding.expected,
        got=finding.got,
        wrong_elements=int(finding.wrong.size),
        total_elements=total,
        pattern=describe_pattern(finding.wrong, rows, columns),
        seed=None if case.hidden else case.seed,
        regime=case.regime,
    )


def make_diagnostic(output: Output, finding: Finding, initial: npt.NDArray[Any]) -> Diagnostic:
    """Return the sentence that goes with the mismatch: what the gate allows, and a likely cause."""
    return Diagnostic(
        message=f"tensor {output.name!r}, gate {finding.gate}: {finding.note}",
        hint=likely_cause(output, finding, initial),
    )
