"""A checked candidate timed on a GPU: what the search keeps of the benchmark stage's results.

A step of the search is timed against the run's main baseline with one fixed number of pairs, a
greater one where two candidates are tied; a winner at every workload that it claims, with as many
pairs as the verdicts need.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kopt.config.callbacks import ignore
from kopt.config.errors import SetupError
from kopt.config.time_left import TimeLeft
from kopt.kernels.bench_result import BenchResult, Comparison
from kopt.kernels.check_result import CheckResult
from kopt.kernels.problem import Workload
from kopt.kernels.status import Provenance, Status, Verdict
from kopt.search.records.evaluation import (
    BASELINE_LATENCY,
    BELOW_COPY,
    COPY,
    LATENCY,
    NOISE_FLOOR,
    SPEEDUP,
    SPEEDUP_HIGH,
    SPEEDUP_LOW,
    EvaluationJob,
    MetricValue,
)
from kopt.tools.bench.reference_side import REFERENCE
from kopt.tools.bench.request import MIN_PAIRS, BaselineChoice, BenchRequest
from kopt.tools.bench.stage import bench_candidate
from kopt.tools.check.request import CheckRequest
from kopt.tools.facts.bench_facts import QUICK_ONLY, below_copy_words

from .evaluation_site import EvaluationSite


@dataclass(frozen=True)
class JobTiming:
    """What timing a candidate gave."""

    status: Status
    summary: str
    """One line for people."""
    values: tuple[MetricValue, ...]
    """Empty unless passed; of an impossible time there is none either."""
    documents: dict[str, bytes]
    """The results as JSON, by artifact kind."""


@dataclass(frozen=True)
class CheckedCase:
    """A check that was asked for, and its result."""

    request: CheckRequest
    result: CheckResult


def measure_job(job: EvaluationJob, checked: CheckedCase, site: EvaluationSite) -> JobTiming:
    """Time a candidate that has passed its check on the GPU of `site`, the named workload first.

    The steps of a run's first timing are told, which may wait for a library's build, and those of
    the timing behind a full check, with its place among the workloads.

    Raises:
        SetupError: The baseline is another one than that of the run's other candidates.
        InfraError: The device failed, not the candidate.
    """
    if site.timer is None:
        raise ValueError("the simulator measures no time")
    request, check = checked.request, checked.result
    base = BenchRequest(
        case=request.case,
        compiler=request.compiler,
        checked=check,
        copies=True,
        progress=site.say if job.baseline is None else ignore,
    )
    if job.level == "full":
        requests = [_at(base, check, workload) for workload in request.case.timed_from_here]
    else:
        # The first candidate has found that no library path works here; the winner asks again.
        baselines: BaselineChoice = "reference" if job.baseline == REFERENCE else "auto"
        requests = [_of_pairs(base, baselines, job.pairs)]
    results: list[tuple[Workload, BenchResult]] = []
    pace = TimeLeft(len(requests))
    for number, each in enumerate(requests, start=1):
        if job.level == "full":
            each = replace(each, progress=pace.piece(number, site.say))
        result = bench_candidate(each, site.timer, site.settings)
        results.append((each.case.workload, result))
        if result.status is not Status.PASSED or result.verdict is Verdict.IMPOSSIBLE:
            break
    _refuse_another_baseline(job, results[0][1])
    return _measurement(results)


def _of_pairs(base: BenchRequest, baselines: BaselineChoice, asked: int | None) -> BenchRequest:
    """Return a measurement of as many pairs as were asked for, or of the usual ones."""
    pairs = asked or MIN_PAIRS
    return replace(
        base,
        baselines=baselines,
        min_pairs=pairs,
        max_pairs=pairs,
        may_end_early=asked is None,
    )


def _at(base: BenchRequest, check: CheckResult, workload: Workload) -> BenchRequest:
    """Return the request for one workload; a full check has passed on every one that is claimed."""
    case = base.case.at(workload)
    return replace(base, case=case, checked=check.model_copy(update={"kernel": case.kernel_id}))


def _refuse_another_baseline(job: EvaluationJob, result: BenchResult) -> None:
    label = result.comparisons[0].baseline.label if result.comparisons else None
    if None not in (job.baseline, label) and label != job.baseline:
        raise SetupError(
            f"the fastest baseline is {label} now, the run's other candidates were compared with"
            f" {job.baseline}: begin a new run"
        )


def _measurement(results: Sequence[tuple[Workload, BenchResult]]) -> JobTiming:
    documents = {
        "bench" if index == 0 else f"bench/{workload.name}": _document(result)
        for index, (workload, result) in enumerate(results)
    }
    last = results[-1][1]
    summaries = [_summary(workload, result) for workload, result in results]
    if last.status is not Status.PASSED:
        return JobTiming(last.status, summaries[-1], (), documents)
    if last.verdict is Verdict.IMPOSSIBLE:
        return JobTiming(Status.PASSED, summaries[-1], (), documents)
    values = [value for workload, result in results for value in _values(workload, result)]
    return JobTiming(Status.PASSED, "; ".join(summaries), tuple(values), documents)


def _document(result: BenchResult) -> bytes:
    return result.model_dump_json(by_alias=True).encode()


def _values(workload: Workload, result: BenchResult) -> Iterator[MetricValue]:
    def measured(metric: str, unit: str, value: float) -> MetricValue:
        return MetricValue.of(workload.name, (metric, unit), Provenance.MEASURED, value)

    if result.latency is not None:
        yield measured(LATENCY, "us", result.latency.median_us)
    if result.warm_us is not None:
        yield measured("warm_latency", "us", result.warm_us)
    if result.plain_copy is not None:
        copy_us = result.plain_copy.latency.median_us
        yield measured(COPY, "us", copy_us)
        if result.latency is not None and below_copy_words(result) is not None:
            yield measured(BELOW_COPY, "1", result.latency.median_us / copy_us)
    if not result.comparisons:
        return
    main = result.comparisons[0]
    if main.speedup is not None and main.interval is not None:
        unit = main.baseline.label
        yield measured(SPEEDUP, unit, main.speedup)
        yield measured(SPEEDUP_LOW, unit, main.interval[0])
        yield measured(SPEEDUP_HIGH, unit, main.interval[1])
    if main.noise_floor is not None:
        yield measured(NOISE_FLOOR, "1", main.noise_floor.threshold)
    if main.baseline_latency is not None:
        yield measured(BASELINE_LATENCY, "us", main.baseline_latency.median_us)


def _summary(workload: Workload, result: BenchResult) -> str:
    if result.status is not Status.PASSED:
        errors = (found.message for found in result.diagnostics if found.severity == "error")
        return next(errors, f"{workload.name}: {result.status} while it was timed")
    if result.verdict is Verdict.IMPOSSIBLE:
        return f"{workload.name}: impossible, shorter than the memory can deliver the bytes"
    if not result.comparisons:
        return f"{workload.name}: nothing to compare with"
    unproven = f", {QUICK_ONLY}" if result.is_unproven else ""
    below = below_copy_words(result)
    doubt = "" if below is None else f"; {below}"
    return f"{workload.name}: {_comparison_words(result.comparisons[0])}{unproven}{doubt}"


def _comparison_words(main: Comparison) -> str:
    verdict = main.verdict.value.replace("_", " ")
    if main.speedup is None or main.interval is None:
        return f"{verdict} against {main.baseline.label}"
    low, high = main.interval
    return f"{main.speedup:.3f}x {main.baseline.label} ({low:.3f} to {high:.3f}), {verdict}"
