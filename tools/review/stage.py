"""The review of a candidate: full check, sanitizer, timing at every workload, then the answer.

It evaluates nothing of its own: the stages find, `judgement.py` says what follows for the claim.
Without a GPU correctness is judged, and a claim that physics refutes; nothing is said of speed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from kopt import __version__
from kopt.config.callbacks import ignore, prefixed
from kopt.config.errors import ToolError
from kopt.config.near_matches import near_matches
from kopt.config.settings import DEFAULT_ARCH, Settings
from kopt.kernels.bench_result import BenchResult, without_samples
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult, SanitizerResult
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.record import because
from kopt.kernels.review_result import (
    Claim,
    ReviewedForm,
    ReviewedWorkload,
    ReviewResult,
    SpeedLimit,
)
from kopt.kernels.status import Status
from kopt.tools.bench.reference_side import REFERENCE
from kopt.tools.bench.repeated_timing import CheckedCandidate, time_once
from kopt.tools.bench.request import BenchRequest
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.stage import check_candidate
from kopt.tools.devices.device import Device
from kopt.tools.devices.timer import TimingDevice
from kopt.tools.facts.check_facts import check_summary
from kopt.tools.sanitize.stage import SanitizeRequest, sanitize

from .judgement import (
    ClaimJudgement,
    claimed_comparison,
    judge_claim,
    judge_status,
    judge_workload,
    mean_speedup,
)
from .speed_limit import receipt_limit, timed_limit


@dataclass(frozen=True)
class ReviewRequest:
    """A candidate, and what is said of it."""

    case: Case
    claim: Claim
    claimed: tuple[Workload, ...]
    """The workloads that the claim is of, the named one first."""
    arch: str = DEFAULT_ARCH
    progress: Callable[[str], None] = ignore
    """Called with a short line before each step."""
    keep: Callable[[ReviewResult], None] = ignore
    """Called with what is known after each step."""


@dataclass(frozen=True)
class Reviewer:
    """Where a review is made."""

    device: Device
    timer: TimingDevice | None
    """`device` if it is a GPU; None for the simulator, which measures no time."""
    settings: Settings


def refuse_unknown_baseline(claim: Claim, problem: Problem) -> None:
    """Refuse a claim against a baseline that the problem does not have.

    Raises:
        ToolError: The message has those that it has.
    """
    known = [REFERENCE, *(baseline.name for baseline in problem.baselines)]
    if claim.against is not None and claim.against not in known:
        near = near_matches(claim.against, known)
        raise ToolError(f"{problem.name} has no baseline {claim.against!r}; {near}")


def review_candidate(request: ReviewRequest, where: Reviewer) -> ReviewResult:
    """Return whether the claim holds, as far as this device can tell.

    Raises:
        ToolError: The problem's oracle or reference kernel is at fault.
        SetupError: No compiler, or KOPT_HOME cannot be written.
        InfraError: The device failed, not the candidate.
    """
    start = perf_counter()
    asked = CheckRequest(
        case=request.case, level="full", arch=request.arch, progress=request.progress
    )
    check = check_candidate(asked, where.device, where.settings)
    result = begun(request, check, where)
    request.keep(result)
    if where.timer is not None and check.status is Status.PASSED:
        result = _sanitized(request, where.timer, where.settings, result)
        request.keep(result)
        if result.status is Status.PASSED:
            result = _timed(request, where.timer, where.settings, result)
    return result.model_copy(update={"elapsed_s": perf_counter() - start})


def begun(
    request: ReviewRequest, check: CheckResult, where: Reviewer, form: ReviewedForm = "candidate"
) -> ReviewResult:
    """Return the result of which only the check is known."""
    case = request.case
    base = ReviewResult(
        answer="cannot_be_told",
        reasons=(),
        claim=request.claim,
        status=check.status,
        kernel=case.kernel_id,
        candidate=case.candidate.id,
        source_name=case.candidate.name,
        form=form,
        device=where.device.name,
        arch=request.arch,
        gpu=None if where.timer is None else where.timer.facts,
        check=check,
        kopt_version=__version__,
        elapsed_s=0.0,
    )
    failed = judge_status(check.status, check_summary(check), simulated=where.timer is None)
    workloads = tuple(
        _reviewed(request, workload, None, _receipt_limit(request, workload, where))
        for workload in case.timed_from_here
    )
    if failed is None:
        return _answered(base.model_copy(update={"workloads": workloads}))
    answered = judge_claim(request.claim, workloads, None)
    if failed.answer == "cannot_be_told" and answered[0] == "does_not_hold":  # physics needs no run
        update = {"workloads": workloads, "answer": answered[0], "reasons": answered[1]}
        return base.model_copy(update=update)
    return _decided(base, failed)


def reviewed_untimed(
    request: ReviewRequest, result: ReviewResult, limit: SpeedLimit | None, why: str
) -> ReviewResult:
    """Return `result` of what is right and cannot be timed; `limit` may refute the claim still."""
    reviewed = _reviewed(request, request.case.workload, None, limit)
    if reviewed.answer == "cannot_be_told":
        reviewed = reviewed.model_copy(update={"reason": why})
    return _answered(result.model_copy(update={"workloads": (reviewed,)}))


def _receipt_limit(
    request: ReviewRequest, workload: Workload, where: Reviewer
) -> SpeedLimit | None:
    if where.timer is not None:  # it measures the baseline itself
        return None
    case = request.case.at(workload)
    return receipt_limit(case, request.arch, request.claim.against, where.settings)


def _sanitized(
    request: ReviewRequest, timer: TimingDevice, settings: Settings, result: ReviewResult
) -> ReviewResult:
    """Return `result` with what the sanitizer found, workload by workload up to a finding."""
    found: list[SanitizerResult] = []
    for workload in request.case.timed_from_here:
        asked = SanitizeRequest(
            case=request.case.at(workload), progress=prefixed(request.progress, workload.name)
        )
        found.append(sanitize(asked, timer, settings))
        if found[-1].status is not Status.PASSED:
            break
    last = found[-1]
    result = result.model_copy(update={"sanitizer": tuple(found), "status": last.status})
    said = because([entry for run in last.runs for entry in run.findings])[2:]
    failed = judge_status(last.status, f"compute-sanitizer: {said}", simulated=False)
    return result if failed is None else _decided(result, failed)


def _timed(
    request: ReviewRequest, timer: TimingDevice, settings: Settings, result: ReviewResult
) -> ReviewResult:
    """Return `result` with a measurement of every workload, as far as each passes."""
    case = request.case
    domain = case.timed_from_here
    checked = CheckedCandidate(case, domain, result.check, timer.facts, timer.gpu)
    for place, workload in enumerate(domain):
        bench = time_once(_timing(request, checked, workload), timer, settings)
        compared = claimed_comparison(request.claim, bench)
        limit = (
            None if compared is None else timed_limit(case.at(workload), bench, compared, timer.gpu)
        )
        reviewed = list(result.workloads)
        reviewed[place] = _reviewed(request, workload, without_samples(bench), limit)
        update = {"workloads": tuple(reviewed), "status": bench.status}
        result = _answered(result.model_copy(update=update))
        request.keep(result)
        if bench.status is not Status.PASSED:
            break
    return result


def _timing(request: ReviewRequest, checked: CheckedCandidate, workload: Workload) -> BenchRequest:
    # `every` times all library paths: the one that a claim names need not be the fastest.
    is_auto = request.claim.against in (None, REFERENCE)
    return BenchRequest(
        case=request.case.at(workload),
        baselines="auto" if is_auto else "every",
        checked=checked.check_of(workload),
        progress=prefixed(request.progress, workload.name),
    )


def _reviewed(
    request: ReviewRequest,
    workload: Workload,
    bench: BenchResult | None,
    limit: SpeedLimit | None,
) -> ReviewedWorkload:
    judged = judge_workload(request.claim, bench, limit)
    return ReviewedWorkload(
        workload=workload.name,
        kernel=request.case.problem.kernel_id(workload),
        is_claimed=request.claim.is_mean or workload in request.claimed,
        answer=judged.answer,
        reason=judged.reason,
        limit=limit,
        bench=bench,
    )


def _decided(result: ReviewResult, judged: ClaimJudgement) -> ReviewResult:
    """Return `result` with the answer of a check that did not pass."""
    return result.model_copy(update={"answer": judged.answer, "reasons": (judged.reason,)})


def _answered(result: ReviewResult) -> ReviewResult:
    """Return `result` with the answer over all of its workloads."""
    mean = mean_speedup(result.claim, result.workloads)
    answer, reasons = judge_claim(result.claim, result.workloads, mean)
    unsanitized = _unsanitized(result)
    if answer == "holds" and unsanitized is not None:
        answer, reasons = "cannot_be_told", (unsanitized, *reasons)
    update = {"answer": answer, "reasons": reasons, "mean": mean}
    return result.model_copy(update=update)


def _unsanitized(result: ReviewResult) -> str | None:
    """Return why no sanitizer stands behind a measurement; None where one does."""
    if result.sanitizer and all(one.is_complete for one in result.sanitizer):
        return None
    runs = [run for one in result.sanitizer for run in one.runs if run.outcome != "passed"]
    why = f": {runs[0].tool} {runs[0].outcome}, {runs[0].reason}" if runs else ""
    return f"the speed is reached, but compute-sanitizer did not judge all of it{why}"
