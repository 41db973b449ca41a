"""Promotion: from a candidate that was faster once to a winner with a receipt.

Full check, sanitizer, then measurements in fresh processes and allocations at every workload that
the header claims. One refusal anywhere and nothing is written; files are written last, so that a
promotion that is interrupted leaves no trace. docs/receipts.md has the rules and their reasons.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from kopt.config.callbacks import ignore, prefixed
from kopt.config.settings import Settings
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult, SanitizerResult
from kopt.kernels.problem import Workload
from kopt.kernels.promotion_result import PromotionResult
from kopt.kernels.receipt import WorkloadEvidence
from kopt.kernels.record import because
from kopt.kernels.status import Status
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.stage import check_candidate
from kopt.tools.devices.timer import TimingDevice
from kopt.tools.sanitize.stage import SanitizeRequest, sanitize

from .agreement import Attempt, combine, narrower_domain, refusals
from .receipt_parts import make_receipt, parts_of
from .receipt_seal import sealed
from .repeated_timing import (
    CheckedCandidate,
    OpenDevice,
    by_workload,
    time_repeatedly,
)
from .winner_files import (
    OnExisting,
    place_winner,
    refuse_incomparable,
    require_writable,
    source_file,
    winner_places,
    winners_lock,
)


@dataclass(frozen=True)
class PromotionRequest:
    """What is to be promoted."""

    case: Case
    """With the defaults of its `tune` values: a winner's file says by itself how it is built."""
    winners: Path | None = None
    """Folder for the files; None: KOPT_HOME/winners."""
    on_existing: OnExisting = "keep_better"
    progress: Callable[[str], None] = ignore
    """Called with a short line before each step."""


def promote_candidate(
    request: PromotionRequest, open_device: OpenDevice, settings: Settings
) -> PromotionResult:
    """Return whether the candidate is a winner at every workload it claims; if so, write it.

    Raises:
        ToolError: A winner is in the way that cannot be compared, or the problem's oracle or
            reference kernel is at fault.
        SetupError: No GPU, no compiler, or a folder that cannot be written.
        InfraError: The device failed, not the candidate.
    """
    start = perf_counter()
    # Of a header with mistakes, the problem's: the check says what they are.
    workloads = request.case.timed_domain or request.case.problem.workloads
    with open_device() as device:
        places = _places(request, workloads, device, settings)
        check = _check(request, workloads[0], device, settings)
        result = PromotionResult(
            status=check.status,
            outcome="not_promoted",
            reasons=_check_reasons(check),
            kernel=check.kernel,
            domain=tuple(workload.name for workload in workloads),
            candidate=check.candidate,
            device=device.name,
            gpu=device.facts,
            check=check,
            elapsed_s=0.0,
        )
        if check.status is Status.PASSED:
            result = _sanitized(request, workloads, device, settings, result)
        checked = CheckedCandidate(request.case, workloads, check, device.facts, device.gpu)
    if result.status is Status.PASSED:
        attempts = time_repeatedly(checked, open_device, settings, request.progress)
        result = _judged(request, result, attempts)
    if result.workloads:
        result = _written(request, checked, places, result, settings)
    return result.model_copy(update={"elapsed_s": perf_counter() - start})


def _places(
    request: PromotionRequest,
    workloads: tuple[Workload, ...],
    device: TimingDevice,
    settings: Settings,
) -> tuple[Path, ...]:
    folder = (request.winners or settings.winners).absolute()
    places = winner_places(folder, request.case.problem, workloads, device.facts.arch)
    require_writable(places)
    if request.on_existing == "keep_better":
        refuse_incomparable(places, request.case.problem, request.case.candidate.id, device.facts)
    return places


def _check(
    request: PromotionRequest, workload: Workload, device: TimingDevice, settings: Settings
) -> CheckResult:
    asked = CheckRequest(
        case=request.case.at(workload),
        level="full",
        arch=device.facts.arch,
        progress=request.progress,
    )
    return check_candidate(asked, device, settings)


def _check_reasons(check: CheckResult) -> tuple[str, ...]:
    if check.status is Status.PASSED:
        return ()
    return (f"the full check ended with {check.status}{because(check.diagnostics)}",)


def _sanitized(
    request: PromotionRequest,
    workloads: tuple[Workload, ...],
    device: TimingDevice,
    settings: Settings,
    result: PromotionResult,
) -> PromotionResult:
    """Return `result` with what the sanitizer found, workload by workload up to a finding."""
    found: list[SanitizerResult] = []
    for workload in workloads:
        asked = SanitizeRequest(
            case=request.case.at(workload),
            progress=prefixed(request.progress, workload.name),
        )
        one = sanitize(asked, device, settings)
        found.append(one)
        if one.status is not Status.PASSED:
            break
    last = found[-1]
    reasons: tuple[str, ...] = ()
    if last.status is not Status.PASSED:
        findings = [entry for run in last.runs for entry in run.findings]
        name = workloads[len(found) - 1].name
        reasons = (f"{name}: compute-sanitizer finds {last.status}{because(findings)}",)
    return result.model_copy(
        update={"status": last.status, "sanitizer": tuple(found), "reasons": reasons}
    )


def _judged(
    request: PromotionRequest, result: PromotionResult, attempts: tuple[Attempt, ...]
) -> PromotionResult:
    """Return `result` with the measurements, and with their evidence if they agree."""
    grouped = by_workload(attempts)
    refused = refusals(request.case.problem, grouped)
    statuses = (attempt.result.status for attempt in attempts)
    failed = (status for status in statuses if status is not Status.PASSED)
    evidence: tuple[WorkloadEvidence, ...] = ()
    if not refused:
        evidence = tuple(combine(request.case.problem, made) for made in grouped.values())
    return result.model_copy(
        update={
            "status": next(failed, Status.PASSED),
            "reasons": tuple(reason for reasons in refused.values() for reason in reasons),
            "narrower": narrower_domain(request.case, grouped, refused),
            "attempts": tuple(attempt.record() for attempt in attempts),
            "workloads": evidence,
        }
    )


def _written(
    request: PromotionRequest,
    checked: CheckedCandidate,
    places: tuple[Path, ...],
    result: PromotionResult,
    settings: Settings,
) -> PromotionResult:
    """Write source and receipts and return `result` as it stands then."""
    with winners_lock(places[0]):  # another promotion must not take the same name
        file = source_file(places[0], request.case.problem.name, request.case.candidate)
        whole = make_receipt(checked, result.sanitizer, result.workloads, file)
        request.progress("writing")
        files = tuple(
            place_winner(place, sealed(receipt, settings), request.on_existing)
            for place, receipt in zip(places, parts_of(whole), strict=True)
        )
    any_written = any(file.action == "written" for file in files)
    reasons = tuple(f"{file.workload}: {file.reason}" for file in files if file.reason is not None)
    return result.model_copy(
        update={
            "outcome": "promoted" if any_written else "kept_existing",
            "reasons": reasons,
            "workloads": tuple(_without_samples(entry) for entry in result.workloads),
            "geometric_mean_speedup": whole.geometric_mean_speedup,
            "files": files,
        }
    )


def _without_samples(entry: WorkloadEvidence) -> WorkloadEvidence:
    bare = tuple(one.model_copy(update={"log_ratios": ()}) for one in entry.measurements)
    return entry.model_copy(update={"measurements": bare})
