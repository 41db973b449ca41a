"""Whether repeated measurements of one workload agree, and what they say together.

The rule (docs/receipts.md has the reasons): every measurement is `faster` than the same main
baseline and `slower` than no other that is like for like, and no two intervals are further apart
than is little beside the gain.

Of a refused candidate it says what it could claim instead: the workloads at which every measurement
was faster. That promotes nothing; a narrower claim is measured in fresh processes like any other.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import median

from kopt.kernels.bench_result import BenchResult, Comparison, without_samples
from kopt.kernels.case import Case
from kopt.kernels.domain import narrowed_where
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.promotion_result import HeldWorkload, NarrowerDomain, PromotionAttempt
from kopt.kernels.receipt import RepeatedMeasurement, WorkloadEvidence
from kopt.kernels.record import because
from kopt.kernels.status import Status, Verdict

from .reference_side import REFERENCE

MAX_SPREAD = 0.02
"""Log ratio that two intervals of one workload may be apart at most. Honest kernels of 3 to 5 us
differ by 0.3 to 1.3 % between allocations on an H100 (docs/receipts.md)."""
SPREAD_OF_GAIN = 0.25
"""Share of the gain, ln(speedup), that they may be apart at most."""


@dataclass(frozen=True)
class Attempt:
    """One measurement with its place among the others."""

    workload: Workload
    process: int
    """Counted from 1."""
    allocation: int
    """Counted from 1 in each process."""
    result: BenchResult

    @property
    def main(self) -> Comparison | None:
        """The comparison with the main baseline."""
        return next(iter(self.result.comparisons), None)

    @property
    def place(self) -> str:
        """How it is called in sentences."""
        return f"process {self.process}, allocation {self.allocation}"

    def record(self) -> PromotionAttempt:
        """Return what a promotion's result has of it."""
        main = self.main
        floor = None if main is None else main.noise_floor
        return PromotionAttempt(
            workload=self.workload.name,
            process=self.process,
            allocation=self.allocation,
            status=self.result.status,
            verdict=self.result.verdict,
            baseline=None if main is None else main.baseline.label,
            speedup=None if main is None else main.speedup,
            interval=None if main is None else main.interval,
            noise_threshold=None if floor is None else floor.threshold,
        )


def refusal(attempt: Attempt) -> str | None:
    """Return why one measurement alone stops a promotion; None if it does not."""
    result, name = attempt.result, attempt.workload.name
    if result.status is not Status.PASSED:
        said = because(result.diagnostics)
        return f"{name}: {result.status} when it was timed ({attempt.place}){said}"
    main = attempt.main
    if main is None or main.verdict is not Verdict.FASTER:
        verdict = "not compared" if main is None else main.verdict.replace("_", " ")
        against = "" if main is None else f" against {main.baseline.label}"
        return f"{name}: {verdict}{against}{_ratio(main)} ({attempt.place})"
    slower = next((one for one in result.comparisons if one.verdict is Verdict.SLOWER), None)
    if slower is not None:
        label = slower.baseline.label
        return (
            f"{name}: faster than {main.baseline.label}, but slower than {label}"
            f"{_ratio(slower)} ({attempt.place})"
        )
    return None


def refusals(
    problem: Problem, grouped: Mapping[str, Sequence[Attempt]]
) -> dict[str, tuple[str, ...]]:
    """Return why each workload stops a promotion, by name; those that do not are left out.

    Whether measurements agree is asked only where none is refused: until then there are too few.
    """
    alone = {
        name: tuple(reason for attempt in made if (reason := refusal(attempt)) is not None)
        for name, made in grouped.items()
    }
    found = {name: reasons for name, reasons in alone.items() if reasons}
    if found:
        return found
    together = {name: _disagreement(problem, made) for name, made in grouped.items()}
    return {name: (f"{name}: {why}",) for name, why in together.items() if why is not None}


def _disagreement(problem: Problem, attempts: Sequence[Attempt]) -> str | None:
    labels = sorted({_main(attempt).baseline.label for attempt in attempts})
    if len(labels) > 1:
        return f"the fastest baseline was not always the same: {', '.join(labels)}"
    return disagreement(combine(problem, attempts))


def disagreement(entry: WorkloadEvidence) -> str | None:
    """Return why the measurements of one workload, each fine alone, do not agree.

    The two intervals that are furthest apart decide; all distances are log ratios.
    """
    made = entry.measurements
    gain = median(log(one.speedup) for one in made)
    allowed = max(entry.noise_threshold, min(MAX_SPREAD, SPREAD_OF_GAIN * gain))
    found = log(max(one.interval[0] for one in made)) - log(min(one.interval[1] for one in made))
    if found <= allowed:
        return None
    listed = ", ".join(f"{one.speedup:.3f}x" for one in made)
    return (
        f"the measurements do not agree: {listed}; two intervals are {found:.2%} apart,"
        f" {allowed:.2%} is allowed beside such a gain"
    )


def combine(problem: Problem, attempts: Sequence[Attempt]) -> WorkloadEvidence:
    """Return what agreeing measurements of one workload say together."""
    first = attempts[0]
    main = _main(first)
    measurements = tuple(_measurement(attempt) for attempt in attempts)
    speedups = [one.speedup for one in measurements]
    return WorkloadEvidence(
        workload=first.workload.name,
        kernel=problem.kernel_id(first.workload),
        baseline=main.baseline,
        baseline_reason=baseline_reason(main, first.result),
        rejected=first.result.rejected,
        like_for_like=main.like_for_like,
        measurements=measurements,
        speedup=median(speedups),
        range=(min(speedups), max(speedups)),
    )


def baseline_reason(main: Comparison, result: BenchResult) -> str:
    """Return why `main` is what the candidate is compared with."""
    if main.baseline.name != REFERENCE:
        return "the fastest of the library's paths that pass kopt's check on this device"
    if result.rejected:
        return "the problem's reference kernel: no path of a library passes kopt's check here"
    return "the problem's reference kernel: the problem names no library"


_OF_RESULT = ("seed", "latency", "rotation", "timed_outputs", "state")
_OF_COMPARISON = (
    *("verdict", "speedup", "interval", "pairs", "dropped_pairs", "log_ratios"),
    *("noise_floor", "baseline_latency"),
)


def _measurement(attempt: Attempt) -> RepeatedMeasurement:
    """Return what a receipt keeps: a comparison with a verdict has its times, outputs and seed."""
    result, main = attempt.result, _main(attempt)
    return RepeatedMeasurement.model_validate(
        {
            "process": attempt.process,
            "allocation": attempt.allocation,
            **{name: getattr(result, name) for name in _OF_RESULT},
            **{name: getattr(main, name) for name in _OF_COMPARISON},
            "others": without_samples(result).comparisons[1:],
        }
    )


def _main(attempt: Attempt) -> Comparison:
    if attempt.main is None:
        raise ValueError("a measurement that is not refused has a comparison")
    return attempt.main


def _ratio(comparison: Comparison | None) -> str:
    if comparison is None or comparison.speedup is None or comparison.interval is None:
        return ""
    low, high = comparison.interval
    return f": {comparison.speedup:.3f}x, {low:.3f} to {high:.3f}"


def narrower_domain(
    case: Case,
    grouped: Mapping[str, Sequence[Attempt]],
    refused: Collection[str],
) -> NarrowerDomain | None:
    """Return the domain of the workloads that held; None where none did, or none was `refused`.

    A candidate that faulted, or was faster than the memory allows, is to be mended: there is no
    domain for it.
    """
    held = {name: made for name, made in grouped.items() if name not in refused}
    attempts = [attempt.result for made in grouped.values() for attempt in made]
    if case.header is None or not held or not refused or any(map(_is_at_fault, attempts)):
        return None
    kept = [case.problem.workload(name) for name in held]
    return NarrowerDomain(
        workloads=tuple(_held(name, made) for name, made in held.items()),
        where=narrowed_where(case.header, case.problem, kept),
    )


def _is_at_fault(result: BenchResult) -> bool:
    return result.status is not Status.PASSED or result.verdict is Verdict.IMPOSSIBLE


def _held(name: str, attempts: Sequence[Attempt]) -> HeldWorkload:
    mains = [attempt.main for attempt in attempts if attempt.main is not None]
    return HeldWorkload(
        workload=name,
        baseline=mains[0].baseline.label,
        speedup=median(main.speedup for main in mains if main.speedup is not None),
        measurements=len(attempts),
    )
