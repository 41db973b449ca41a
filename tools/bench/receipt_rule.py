"""What a receipt must say to be one: its numbers follow from its samples, by the promotion's rule.

Whoever edits a receipt can seal it again, so this proves nothing of what was measured. It keeps a
receipt from claiming what its own samples do not, and `kopt verify` from taking a range that no
promotion would have accepted.
"""

from collections.abc import Iterator
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
_SESSIONS = [
    (process, allocation)
    for process in range(1, PROCESSES + 1)
    for allocation in range(1, ALLOCATIONS + 1)
]


Rule = tuple[bool, str]
"""Whether a receipt breaks it, and what it then says."""


def contradiction(receipt: Receipt) -> str | None:
    """Return what in a receipt does not follow from the rest of it; None if all does."""
    return next((found for is_broken, found in _rules(receipt) if is_broken), None)


def _rules(receipt: Receipt) -> Iterator[Rule]:
    """Give the rules in order: each may assume that those before it hold."""
    several = len(receipt.workloads) > 1
    yield (
        Candidate(receipt.source).id != receipt.candidate,
        "its source has another id than it states",
    )
    yield not receipt.workloads, "it has no workload"
    yield receipt.promotion != "" and several, "it is of one workload and has several"
    yield len(set(receipt.domain)) < len(receipt.domain), "its domain names a workload twice"
    for entry in receipt.workloads:
        name, kernel = entry.workload, f"{receipt.problem}_{entry.workload}"
        is_claimed = name in receipt.claimed
        yield not is_claimed, f"workload {name} is none of those that it claims"
        yield (
            entry.kernel != kernel,
            f"{entry.kernel} is no kernel id of {receipt.problem} at {name}",
        )
    for entry in receipt.workloads:
        no_cubin = receipt.cubin_of(entry.workload) is None
        yield no_cubin, f"no cubin serves workload {entry.workload}"
        yield from _of_workload(entry)
    mean = geometric_mean(entry.speedup for entry in receipt.workloads)
    is_other = not isclose(receipt.geometric_mean_speedup, mean, rel_tol=_EXACT)
    yield is_other, "its geometric mean does not follow from its workloads"


def _of_workload(entry: WorkloadEvidence) -> Iterator[Rule]:
    name = entry.workload
    sessions = [(one.process, one.allocation) for one in entry.measurements]
    yield not sessions, f"workload {name} has no measurement"
    yield (
        sorted(sessions) != _SESSIONS,
        f"workload {name} was not measured {ALLOCATIONS} times in {PROCESSES} processes each",
    )
    for one in entry.measurements:
        found = next((what for is_broken, what in _of_measurement(one) if is_broken), None)
        yield found is not None, f"{found} of {name} does not follow from its samples"
        yield (
            one.verdict is not Verdict.FASTER or log(one.interval[0]) <= one.noise_floor.threshold,
            f"a measurement of {name} is not faster than its baseline",
        )
    speedups = [one.speedup for one in entry.measurements]
    is_median = isclose(entry.speedup, median(speedups), rel_tol=_EXACT)
    yield (
        not is_median or entry.range != (min(speedups), max(speedups)),
        f"the speedup of {name} does not follow from its measurements",
    )
    yield disagreement(entry) is not None, f"the measurements of {name} do not agree"


def _of_measurement(one: RepeatedMeasurement) -> Iterator[Rule]:
    """Give which number of a measurement is not that of its samples."""
    ratios = one.log_ratios
    yield not ratios or len(ratios) % 2 != 0 or len(ratios) != one.pairs, "the number of pairs"
    now = median_interval(ratios, one.seed)
    yield (
        one.speedup <= 0.0
        or not isclose(log(one.speedup), now.median, rel_tol=_EXACT, abs_tol=_EXACT),
        "a speedup",
    )
    low, high = one.interval
    tolerance = max(_RESAMPLED * (now.high - now.low), _EXACT)
    yield (
        low <= 0.0
        or high < low
        or abs(log(low) - now.low) > tolerance
        or abs(log(high) - now.high) > tolerance,
        "an interval",
    )
