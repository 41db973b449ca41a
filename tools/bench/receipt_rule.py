"""What a receipt must say to be one: its numbers follow from its samples, by the promotion's rule.

Whoever edits a receipt can seal it again, so this proves nothing of what was measured. It keeps a
receipt from claiming what its own samples do not, and `kopt verify` from taking a range that no
promotion would have accepted.
"""

from math import isclose, log
from statistics import geometric_mean, median

from kopt.kernels.candidate import Candidate
from kopt.kernels.receipt import Receipt, RepeatedMeasurement, WorkloadEvidence
from kopt.kernels.status import Verdict

from .agreement import disagreement
from .intervals import median_interval
from .repeated_timing import ALLOCATIONS, PROCESSES

_EXACT = 1e-9
_RESAMPLED = 0.25
"""Share of an interval's width by which other random streams may move its ends."""
_SESSIONS = {
    (process, allocation)
    for process in range(1, PROCESSES + 1)
    for allocation in range(1, ALLOCATIONS + 1)
}


def contradiction(receipt: Receipt) -> str | None:
    """Return what in a receipt does not follow from the rest of it; None if all does."""
    if Candidate(receipt.source).id != receipt.candidate:
        return "its source has another id than it states"
    if (found := _of_names(receipt)) is not None:
        return found
    for entry in receipt.workloads:
        if receipt.cubin_of(entry.workload) is None:
            return f"no cubin serves workload {entry.workload}"
        if (found := _of_workload(entry)) is not None:
            return found
    mean = geometric_mean(entry.speedup for entry in receipt.workloads)
    if not isclose(receipt.geometric_mean_speedup, mean, rel_tol=_EXACT):
        return "its geometric mean does not follow from its workloads"
    return None


def _of_names(receipt: Receipt) -> str | None:
    if not receipt.workloads:
        return "it has no workload"
    if receipt.promotion and len(receipt.workloads) > 1:
        return "it is of one workload and has several"
    if len(set(receipt.domain)) < len(receipt.domain):
        return "its domain names a workload twice"
    for entry in receipt.workloads:
        if entry.workload not in receipt.claimed:
            return f"workload {entry.workload} is none of those that it claims"
        if entry.kernel != f"{receipt.problem}_{entry.workload}":
            return f"{entry.kernel} is no kernel id of {receipt.problem} at {entry.workload}"
    return None


def _of_workload(entry: WorkloadEvidence) -> str | None:
    name = entry.workload
    if not entry.measurements:
        return f"workload {name} has no measurement"
    sessions = [(one.process, one.allocation) for one in entry.measurements]
    if set(sessions) != _SESSIONS or len(sessions) != len(_SESSIONS):
        return f"workload {name} was not measured {ALLOCATIONS} times in {PROCESSES} processes each"
    for one in entry.measurements:
        if (found := _of_measurement(one)) is not None:
            return f"{found} of {name} does not follow from its samples"
        if one.verdict is not Verdict.FASTER or log(one.interval[0]) <= one.noise_floor.threshold:
            return f"a measurement of {name} is not faster than its baseline"
    speedups = [one.speedup for one in entry.measurements]
    ends = (min(speedups), max(speedups))
    if not isclose(entry.speedup, median(speedups), rel_tol=_EXACT) or entry.range != ends:
        return f"the speedup of {name} does not follow from its measurements"
    if disagreement(entry) is not None:
        return f"the measurements of {name} do not agree"
    return None


def _of_measurement(one: RepeatedMeasurement) -> str | None:
    """Return which number of a measurement is not that of its samples."""
    ratios = one.log_ratios
    if not ratios or len(ratios) % 2 or len(ratios) != one.pairs:
        return "the number of pairs"
    now = median_interval(ratios, one.seed)
    if one.speedup <= 0.0 or not isclose(
        log(one.speedup), now.median, rel_tol=_EXACT, abs_tol=_EXACT
    ):
        return "a speedup"
    low, high = one.interval
    tolerance = max(_RESAMPLED * (now.high - now.low), _EXACT)
    if low <= 0.0 or high < low:
        return "an interval"
    if abs(log(low) - now.low) > tolerance or abs(log(high) - now.high) > tolerance:
        return "an interval"
    return None
