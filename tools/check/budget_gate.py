"""Outputs whose slack is a statistic: many standard deviations of honest errors for each element.

An element may be that far off, all of them together may not: a method that is coarser than any
honest one leaves errors below the slack everywhere. So the root mean square over the whole output
is judged as well, against that of honest errors. That bound leaves room for one element at its own:
an output of few elements has no average, and a scalar is that element.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.wide_work import run_wide, slices

from .number_formats import HALF_FORMATS
from .output import PART_ELEMENTS, Finding, Indices, Output, finding_at, in_parts
from .tolerances import BUDGET_RATIO, BUDGET_WINDOW


def budget_gate(output: Output) -> Finding | None:
    """Refuse a whole whose errors are larger than honest ones, though no element is by itself.

    Of 16 bits the rounding of the output itself comes on top, and half_gate judges it.
    """
    reference = output.reference
    if reference.slack is None or reference.slack_deviations is None or not output.differing.size:
        return None
    if reference.number_format in HALF_FORMATS:
        return None
    ratio = budget_ratio(output)
    widest = float(reference.slack.max(initial=0.0))
    honest = _honest_sq(reference.slack, reference.slack_deviations)
    share = widest * widest / honest if 0.0 < honest < np.inf else 0.0
    limit = float(np.sqrt(BUDGET_RATIO**2 + share))
    if ratio <= limit:
        return None
    indices = output.differing
    error = np.abs(output.values_at(indices) - reference.exact_at(indices))
    error = np.where(np.isfinite(error), error, 0.0)
    note = (
        f"the whole error is {ratio:.1f} times that of honest roundings, {limit:.1f} at most:"
        " something is computed more coarsely than its dtypes say"
    )
    return finding_at(output, "total_budget", indices, note, int(indices[np.argmax(error)]))


def budget_ratio(output: Output) -> float:
    """Return the root mean square error in units of honest ones, for an output with a budget."""
    reference = output.reference
    if reference.slack is None or reference.slack_deviations is None:
        return 0.0

    def beyond_sq(part: Indices) -> float:
        exact = reference.exact_at(part)
        with np.errstate(invalid="ignore"):  # infinities, which are no coarse method
            error = np.abs(output.values_at(part) - exact)
            # What each element may be off by itself, for approximations of functions, is none.
            beyond = np.maximum(error - BUDGET_WINDOW * np.abs(exact), 0.0)
        return float(np.square(beyond[np.isfinite(beyond)]).sum())

    honest = _honest_sq(reference.slack, reference.slack_deviations)
    total = sum(in_parts(output.differing, beyond_sq))
    return float(np.sqrt(total / honest)) if honest > 0 else 0.0


def _honest_sq(slack: npt.NDArray[np.floating[Any]], deviations: float) -> float:
    """Return the sum of squares that honest errors leave in the whole output."""

    def sum_of_squares(part: slice) -> float:
        return float(np.square(slack[part], dtype=np.float64).sum())

    return sum(run_wide(sum_of_squares, slices(slack.size, PART_ELEMENTS))) / deviations**2
