"""Whether a claim holds: rules over records, each with its sentence. docs/review.md states them.

Nothing is measured here. What is wrong refutes any claim; a speedup is compared with the claim only
where the checks passed, the verdict is `faster` and both sides do the same work.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

from kopt.kernels.bench_result import BenchResult, Comparison
from kopt.kernels.record import because
from kopt.kernels.review_result import (
    Claim,
    MeanSpeedup,
    ReviewAnswer,
    ReviewedWorkload,
    SpeedLimit,
)
from kopt.kernels.status import Status, Verdict
from kopt.tools.bench.agreement import SPREAD_OF_GAIN
from kopt.tools.bench.reference_side import REFERENCE
from kopt.tools.bench.reproduction_rule import MAX_BETWEEN_GPUS
from kopt.tools.bench.verdict import ENOUGH_ROTATION
from kopt.tools.facts.bench_facts import interval_words, rejected_words

UNTIMED = "no GPU timed it"
UNJUDGED = frozenset(
    {
        Status.PLAN_ERROR,
        Status.REFUSED,
        Status.COMPILE_ERROR,
        Status.UNSUPPORTED_ON_SIM,
        Status.LAUNCH_ERROR,
    }
)
"""Statuses of what was never run to its end: they refute nothing."""


@dataclass(frozen=True)
class ClaimJudgement:
    """An answer with its reason, one sentence without a stop."""

    answer: ReviewAnswer
    reason: str


def judge_status(status: Status, said: str, *, simulated: bool) -> ClaimJudgement | None:
    """Return what a status says of any claim; None for passed, which says nothing of speed.

    Args:
        status: Of a check, a sanitizer or a measurement.
        said: What was found, one line.
        simulated: Whether the simulator ran it, which takes long where a GPU does not.
    """
    if status is Status.PASSED:
        return None
    if status in UNJUDGED or (simulated and status is Status.TIMEOUT):
        return ClaimJudgement("cannot_be_told", f"it was not judged: {status.value}, {said}")
    return ClaimJudgement("does_not_hold", f"it is not right: {status.value}, {said}")


def judge_workload(
    claim: Claim, result: BenchResult | None, limit: SpeedLimit | None
) -> ClaimJudgement:
    """Return whether the claim holds at one workload, whose check has passed."""
    beyond = _beyond(claim, limit)
    if beyond is not None:
        return beyond
    if result is None:
        return ClaimJudgement("cannot_be_told", UNTIMED)
    failed = judge_status(result.status, because(result.diagnostics)[2:], simulated=False)
    if failed is not None:
        return failed
    named = claimed_comparison(claim, result)
    if named is None:
        return ClaimJudgement("cannot_be_told", _why_not_compared(claim, result))
    return _judge_comparison(claim, result, named)


def claimed_comparison(claim: Claim, result: BenchResult) -> Comparison | None:
    """Return the comparison with the claim's baseline: the one that is named, or the main one."""
    named = (one for one in result.comparisons if claim.against in (None, one.baseline.name))
    return next(named, None)


def reach(claimed: float, interval: tuple[float, float], threshold: float) -> ReviewAnswer:
    """Return whether a measured speedup reaches a claimed one.

    It does where the interval, widened by the noise threshold, has the claim in it or lies above,
    and its lower end is short by no more than two GPUs of one model differ. It does not where all
    of the interval is short by more than that. Between the two it cannot be told.

    Args:
        claimed: The speedup that is claimed, above 1.
        interval: 95 % interval of the measured one.
        threshold: Noise threshold of the measurement, a log ratio.
    """
    gain, low, high = log(claimed), log(interval[0]), log(interval[1])
    allowed = max(threshold, min(MAX_BETWEEN_GPUS, SPREAD_OF_GAIN * gain))
    if high + threshold >= gain and low + allowed >= gain:
        return "holds"
    return "does_not_hold" if high + allowed < gain else "cannot_be_told"


def mean_speedup(claim: Claim, workloads: Sequence[ReviewedWorkload]) -> MeanSpeedup | None:
    """Return the geometric mean over `workloads`; None where one has no speedup that counts."""
    found = [
        None if one.bench is None else claimed_comparison(claim, one.bench) for one in workloads
    ]
    compared = [one for one in found if one is not None and one.like_for_like.holds]
    intervals = [one.interval for one in compared if one.interval is not None]
    ratios = [one.speedup for one in compared if one.speedup is not None]
    if not workloads or not len(workloads) == len(intervals) == len(ratios):
        return None
    return MeanSpeedup(
        speedup=_geometric_mean(ratios),
        interval=(
            _geometric_mean([low for low, _ in intervals]),
            _geometric_mean([high for _, high in intervals]),
        ),
        threshold=max(map(_threshold, compared)),
        workloads=tuple(one.workload for one in workloads),
    )


def judge_claim(
    claim: Claim, workloads: Sequence[ReviewedWorkload], mean: MeanSpeedup | None
) -> tuple[ReviewAnswer, tuple[str, ...]]:
    """Return the answer over all workloads, and the reasons, the deciding ones first."""
    wrong = [one for one in workloads if _is_wrong(one)]
    if wrong:
        return "does_not_hold", tuple(f"{one.workload}: {one.reason}" for one in wrong)
    if claim.is_mean:
        judged = _judge_mean(claim, workloads, mean)
        return judged.answer, (judged.reason,)
    claimed = [one for one in workloads if one.is_claimed]
    for answer in ("does_not_hold", "cannot_be_told"):
        decisive = [one for one in claimed if one.answer == answer]
        if decisive:
            return answer, _reasons(decisive)
    return "holds", _reasons(claimed)


def _reasons(workloads: Sequence[ReviewedWorkload]) -> tuple[str, ...]:
    """Return each reason once, with its workloads."""
    names: dict[str, list[str]] = {}
    for one in workloads:
        names.setdefault(one.reason, []).append(one.workload)
    return tuple(f"{', '.join(of)}: {reason}" for reason, of in names.items())


def _is_wrong(one: ReviewedWorkload) -> bool:
    """Return whether it was refuted by what it does, at whichever workload."""
    failed = one.bench is not None and one.bench.status is not Status.PASSED
    return failed and one.answer == "does_not_hold"


def _judge_mean(
    claim: Claim, workloads: Sequence[ReviewedWorkload], mean: MeanSpeedup | None
) -> ClaimJudgement:
    limits = [one.limit.speedup for one in workloads if one.limit is not None]
    if limits and len(limits) == len(workloads) and claim.speedup > _geometric_mean(limits):
        most = f"{_geometric_mean(limits):.2f}x is the most that physics leaves to the mean"
        return ClaimJudgement("does_not_hold", f"{most}; {_claimed_words(claim)}")
    if mean is None:
        open_ = next((one for one in workloads if one.answer != "holds"), None)
        why = "no workload was reviewed" if open_ is None else f"{open_.workload}: {open_.reason}"
        return ClaimJudgement("cannot_be_told", f"there is no mean over all workloads: {why}")
    answer = reach(claim.speedup, mean.interval, mean.threshold)
    words = f"the geometric mean over {', '.join(mean.workloads)} is {mean.speedup:.3f}x"
    return ClaimJudgement(
        answer, f"{words}, {interval_words(mean.interval)}; {_claimed_words(claim)}"
    )


def _beyond(claim: Claim, limit: SpeedLimit | None) -> ClaimJudgement | None:
    """Return that a claim is beyond what physics leaves; None if it is not, or nobody knows."""
    if limit is None or claim.is_mean or claim.speedup <= limit.speedup:
        return None
    what = "the memory needs for the bytes" if limit.bound == "memory" else "an empty kernel takes"
    return ClaimJudgement(
        "does_not_hold",
        f"no kernel can be so fast: {limit.baseline} took {limit.baseline_us:.3f} us on"
        f" {limit.gpu} ({limit.evidence}), and {what} {limit.least_us:.3f} us, so that"
        f" {limit.speedup:.2f}x is the most; {_claimed_words(claim)}",
    )


def _why_not_compared(claim: Claim, result: BenchResult) -> str:
    rejected = [one for one in result.rejected if claim.against in (None, one.name)]
    why = f" ({rejected_words(rejected[0])})" if rejected else ""
    return f"{claim.against or 'no baseline'} was not timed here{why}"


def _judge_comparison(claim: Claim, result: BenchResult, named: Comparison) -> ClaimJudgement:
    if named.verdict is Verdict.IMPOSSIBLE:
        return _judge_impossible(result)
    if not named.like_for_like.holds:
        return _judge_unlike(claim, result, named)
    judged = _judge_ratio(claim, named)
    fastest = _fastest(result)
    if judged.answer == "holds" and fastest is not None and fastest is not named:
        stricter = _judge_ratio(claim, fastest)
        if stricter.answer == "does_not_hold":
            return ClaimJudgement(
                "does_not_hold",
                f"it is reached against {named.baseline.label} alone, which is not the fastest that"
                f" does the same work: {stricter.reason}",
            )
    if judged.answer == "holds" and _lacks_library(claim, result, named):
        return ClaimJudgement(
            "cannot_be_told",
            f"{judged.reason}; but that is kopt's own reference kernel: no library path runs here"
            f" ({rejected_words(result.rejected[0])}). `--against {REFERENCE}` asks for no more",
        )
    return judged


def _judge_impossible(result: BenchResult) -> ClaimJudgement:
    floor_us, latency, rotation = result.memory_floor_us, result.latency, result.rotation
    is_own = (
        floor_us is not None
        and latency is not None
        and rotation is not None
        and rotation.over_l2 >= ENOUGH_ROTATION
        and latency.median_us < floor_us
    )
    if is_own:
        return ClaimJudgement(
            "does_not_hold",
            "its time is shorter than the memory needs for the bytes: timed calls skip work",
        )
    return ClaimJudgement(
        "cannot_be_told", "the baseline's time is shorter than the data sheet allows here"
    )


def _judge_unlike(claim: Claim, result: BenchResult, named: Comparison) -> ClaimJudgement:
    """Judge a claim whose baseline does other work by the fastest that does the same."""
    unlike = (
        f"{named.baseline.label} does other work ({'; '.join(named.like_for_like.differences)})"
    )
    fair = _fastest(result)
    if fair is None:
        return ClaimJudgement(
            "cannot_be_told", f"{unlike}, and nothing that does the same was timed"
        )
    judged = _judge_ratio(claim, fair)
    answer: ReviewAnswer = "cannot_be_told" if judged.answer == "holds" else judged.answer
    return ClaimJudgement(answer, f"{unlike}; like for like: {judged.reason}")


def _judge_ratio(claim: Claim, one: Comparison) -> ClaimJudgement:
    if one.speedup is None or one.interval is None:
        return ClaimJudgement("cannot_be_told", f"too few pairs against {one.baseline.label} count")
    answer = reach(claim.speedup, one.interval, _threshold(one))
    if answer == "holds" and one.verdict is not Verdict.FASTER:
        answer = "cannot_be_told"
    words = f"{one.speedup:.3f}x against {one.baseline.label}, {interval_words(one.interval)}"
    near = ", which is too close to tell" if answer == "cannot_be_told" else ""
    return ClaimJudgement(answer, f"{words}; {_claimed_words(claim)}{near}")


def _claimed_words(claim: Claim) -> str:
    return f"{claim.speedup:g}x is claimed"


def _fastest(result: BenchResult) -> Comparison | None:
    """Return the comparison with the fastest baseline that does the same work."""
    timed = [(one.speedup, one) for one in result.comparisons if one.like_for_like.holds]
    known = [(ratio, one) for ratio, one in timed if ratio is not None]
    return min(known, key=lambda entry: entry[0])[1] if known else None


def _lacks_library(claim: Claim, result: BenchResult, named: Comparison) -> bool:
    """Return whether the claim's baseline could be a library that does not run here."""
    is_missing = any(one.status == "unavailable" for one in result.rejected)
    return claim.against is None and named.baseline.name == REFERENCE and is_missing


def _threshold(one: Comparison) -> float:
    return 0.0 if one.noise_floor is None else one.noise_floor.threshold


def _geometric_mean(ratios: Sequence[float]) -> float:
    return exp(sum(map(log, ratios)) / len(ratios))
