"""What a receipt must say to be one: its numbers follow from its samples, by the promotion's rule.

Whoever edits a receipt can seal it again, so this proves nothing of what was measured. It keeps a
receipt from claiming what its own samples do not, and `kopt verify` from taking a range that no
promotion would have accepted.
"""

from collections.abc import Iterator
from math import isclose, log
from statistics import geometric_mean, median

from kopt.kernels.bench_result import Comparison, Latency, NoiseFloor
from kopt.kernels.candidate import Candidate
from kopt.kernels.receipt import Receipt, RepeatedMeasurement, WorkloadEvidence
from kopt.kernels.status import Provenance, Verdict

from .agreement import MAX_SPREAD, disagreement
from .intervals import Interval, median_interval
from .receipt_proof_rule import Rule, proof_rules
from .repeated_timing import ALLOCATIONS, PROCESSES
from .request import MAX_PAIRS, MIN_PAIRS
from .verdict import decide

_EXACT = 1e-9
_RESAMPLED = 0.25
"""Share of an interval's width by which other random streams may move its ends."""
_SESSIONS = [
    (process, allocation)
    for process in range(1, PROCESSES + 1)
    for allocation in range(1, ALLOCATIONS + 1)
]
_MOST_APART = 0.1
"""Log ratio that the ratio of two median times may be away from a speedup at most, however much the
times vary. It was at most 1.1 % in the 108 measurements of the shipped winners."""


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
    yield from proof_rules(receipt)
    for entry in receipt.workloads:
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
    is_unlike = not entry.like_for_like.holds
    yield is_unlike, f"the baseline of {name} is not like for like"
    for one in entry.measurements:
        found = next((what for is_broken, what in _of_measurement(one) if is_broken), None)
        yield found is not None, f"{found} of {name} does not follow from its samples"
        yield (
            one.verdict is not Verdict.FASTER or log(one.interval[0]) <= one.noise_floor.threshold,
            f"a measurement of {name} is not faster than its baseline",
        )
        yield from _of_session(name, one)
    seeds = {one.seed for one in entry.measurements}
    samples = {one.log_ratios for one in entry.measurements}
    is_repeated = min(len(seeds), len(samples)) < len(sessions)
    yield is_repeated, f"two measurements of {name} are the same one"
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


def _of_session(name: str, one: RepeatedMeasurement) -> Iterator[Rule]:
    """Give what else a session has: enough pairs, noise, times that fit, outputs that were read."""
    yield (
        not MIN_PAIRS <= one.pairs <= MAX_PAIRS,
        f"a measurement of {name} has {one.pairs} pairs, not {MIN_PAIRS} to {MAX_PAIRS}",
    )
    yield not _is_floor(one.noise_floor), f"a measurement of {name} has no whole noise floor"
    is_measured = _is_measured(one.latency, one.pairs)
    yield (
        not is_measured or not _is_measured(one.baseline_latency, one.pairs),
        f"a measurement of {name} has no whole times behind it",
    )
    yield (
        not _follows(one.speedup, one.baseline_latency, one.latency),
        f"a speedup of {name} contradicts the times beside it",
    )
    outputs = one.timed_outputs
    seen = outputs.identical + outputs.within_gates
    are_read = outputs.calls > 0 and min(outputs.identical, outputs.within_gates) >= 0
    yield (
        not are_read or seen > outputs.calls,
        f"a measurement of {name} did not compare its timed outputs",
    )
    for other in one.others:
        yield (
            _is_faster(other, one),
            f"a measurement of {name} is slower than {other.baseline.label}",
        )


def _is_floor(floor: NoiseFloor) -> bool:
    return floor.half_width >= 0.0 and floor.pairs >= MIN_PAIRS


def _is_measured(latency: Latency, pairs: int) -> bool:
    spread = latency.spread
    if latency.provenance is not Provenance.MEASURED or spread is None:
        return False
    p10, p90, least = spread
    return 0.0 < least <= p10 <= latency.median_us <= p90 and latency.replays >= pairs


def _follows(speedup: float, baseline: Latency, candidate: Latency) -> bool:
    """Return whether a speedup fits two summaries of the times that it was made of.

    The median of ratios is not the ratio of medians: they may differ by MAX_SPREAD and half of what
    the times vary by, and by no more than _MOST_APART.
    """
    vary = sum(
        log(spread[1] / spread[0]) for spread in (baseline.spread, candidate.spread) if spread
    )
    allowed = min(_MOST_APART, MAX_SPREAD + vary / 2)
    return abs(log(baseline.median_us / candidate.median_us) - log(speedup)) <= allowed


def _is_faster(other: Comparison, one: RepeatedMeasurement) -> bool:
    """Return whether a further baseline was faster than the candidate, by verdict or interval."""
    if other.verdict is Verdict.SLOWER or other.interval is None:
        return other.verdict is Verdict.SLOWER
    low, high = other.interval
    if not 0.0 < low <= high:
        return True
    found = decide(Interval(0.0, log(low), log(high)), one.noise_floor.threshold)
    return other.like_for_like.holds and found is Verdict.SLOWER
