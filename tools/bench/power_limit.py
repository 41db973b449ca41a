"""Comparisons at a GPU's power limit: who is faster there must be faster alone, too.

At the limit the clocks of both sides of a pair are what it leaves them. A candidate that draws more
power than it needs would slow a baseline down that depends on the clocks more than itself. Alone,
each side pays for its own power only. Times of sides alone are no pairs: the candidate is timed
before and after the baselines, on a cooler GPU and a warmer one, the slower time counts, and it has
to be clearly shorter.
"""

from collections.abc import Iterable

from kopt.config.errors import InfraError
from kopt.kernels.bench_result import Comparison
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Verdict
from kopt.tools.devices.timer import Side, TimingFailure

from .disturbances import POWER_CAP
from .reference_side import candidate_side
from .side_by_side import Timed
from .timed_case import timing_request
from .unpaired_times import time_sides

_MARGIN = 1.01
"""The least ratio of two medians without pairs that shows a difference (unpaired_times.py)."""


def faster_alone(
    timed: Timed, compared: Iterable[Comparison]
) -> tuple[tuple[Comparison, ...], tuple[Diagnostic, ...]]:
    """Return comparisons, `faster` where each side alone says so, too, and why others are not."""
    compared = tuple(compared)
    reasons = {reason for entry in timed.measurement.telemetry for reason in entry.throttle}
    if POWER_CAP not in reasons or all(one.verdict is not Verdict.FASTER for one in compared):
        return compared, ()
    sides = {(entry.path.name, entry.path.pdl): entry.side for entry in timed.contest.baselines}
    faster = [one for one in compared if one.verdict is Verdict.FASTER]
    before = _alone(timed, candidate_side(timed.contest.candidate))
    theirs = [_alone(timed, sides[one.baseline.name, one.baseline.pdl]) for one in faster]
    ours = _slower(before, _alone(timed, candidate_side(timed.contest.candidate)))
    told = {
        one: _why(one, ours, other)
        for one, other in zip(faster, theirs, strict=True)
        if isinstance(ours, str) or isinstance(other, str) or other < _MARGIN * ours
    }
    unproven = {"verdict": Verdict.INCONCLUSIVE}
    judged = (one.model_copy(update=unproven) if one in told else one for one in compared)
    return tuple(judged), tuple(told.values())


def _slower(one: float | str, other: float | str) -> float | str:
    """Return the longer of two times, or why one of them is missing."""
    if isinstance(one, str) or isinstance(other, str):
        return one if isinstance(one, str) else other
    return max(one, other)


def _alone(timed: Timed, side: Side) -> float | str:
    """Return the median time of a call of one side alone, in us; or why there is none."""
    try:
        found = time_sides(timed.case, timing_request(timed.case, (side,)))
    except InfraError as error:  # what was measured in pairs stays, without a verdict
        return str(error)
    return "it failed" if isinstance(found, TimingFailure) else found[0][1].median_us


def _why(one: Comparison, ours: float | str, theirs: float | str) -> Diagnostic:
    both = "; ".join(
        alone if isinstance(alone, str) else f"{alone:.4g} us a call" for alone in (ours, theirs)
    )
    return Diagnostic(
        severity="warning",
        message=f"at the power limit it is faster than {one.baseline.label} in pairs, and not "
        f"alone: {both}",
        hint="a lower clock of both may slow the baseline down more: use less power, or smaller "
        "workloads",
    )
