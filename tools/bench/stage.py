"""The benchmark stage: check, choose baselines, time side by side, decide.

The order is the policy: nothing is timed that was not verified on the inputs it is timed with, and
nothing is compared whose timed outputs were not. `estimated.py` is the stage without a GPU.
"""

import secrets
from concurrent.futures import wait
from time import perf_counter

from kopt.config.errors import InfraError, ToolError
from kopt.config.settings import Settings
from kopt.config.thread_pool import thread_pool
from kopt.kernels.bench_result import BenchResult, PlainCopy, RejectedBaseline
from kopt.kernels.check_result import CheckResult
from kopt.kernels.oracle import warm_up
from kopt.kernels.record import Diagnostic, because
from kopt.kernels.roofline import workload_bytes
from kopt.kernels.status import Status
from kopt.tools.check.hidden_seeds import draw_hidden_seeds
from kopt.tools.check.mismatch import of_hidden_inputs
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.run_case import JudgedRun
from kopt.tools.check.stage import check_candidate
from kopt.tools.devices.device import Program
from kopt.tools.devices.timer import LibrarySide, TimingDevice, TimingFailure

from .baselines import choose_contestants, timing_rejection
from .bench_outcome import begun, comparisons, measured_facts, notes
from .full_check import PassedFullCheck, full_check
from .plain_copy import plain_copy
from .power_limit import faster_alone
from .reference_side import VerifiedProgram, launched_program
from .request import MAX_PAIRS, MIN_PAIRS, BenchRequest
from .side_by_side import Contest, Timed, time_side_by_side
from .timed_case import TimedCase, verify
from .whole_rows import disagreement

_SEED_BITS = 48  # exact in every JSON reader


def bench_candidate(request: BenchRequest, device: TimingDevice, settings: Settings) -> BenchResult:
    """Return how fast the candidate is against its baselines, measured on `device`.

    Raises:
        ToolError: Pairs out of range, a check of something else, no library path where one was
            asked for, or a problem whose oracle or reference kernel is at fault.
        SetupError: No compiler, or KOPT_HOME cannot be written.
        InfraError: The device failed, not the candidate.
    """
    _refuse_wrong_pairs(request)
    start = perf_counter()
    asked = request.quick_check(device.facts.arch)
    if request.checked is None:
        with thread_pool(1, "oracle") as pool:
            # What fails here fails again with the draws.
            warming = pool.submit(warm_up, request.case.problem)
            check = check_candidate(asked, device, settings)
            wait([warming])  # the pool drops what has not begun
    else:
        check = request.checked
        _refuse_other_check(check, asked, device)
    found = {"gpu": device.facts, "diagnostics": (*check.diagnostics, *_scrutiny(check))}
    result = begun(check, request.case.problem.precision).model_copy(update=found)
    if check.status is Status.PASSED:
        case = _timed_case(request, device, settings)
        program = launched_program(case, asked, check.compiled)
        result = _bench(request, case, program, result)
        if request.proves and result.is_unproven:
            result = _proven(result, full_check(asked, device, settings))
    return result.model_copy(update={"elapsed_s": perf_counter() - start})


def _proven(result: BenchResult, full: CheckResult | PassedFullCheck) -> BenchResult:
    """Return `result` with a full check behind it: a new one, or one that passed before."""
    found: dict[str, object] = {"checked": "full", "race_check": full.race_check}
    if isinstance(full, PassedFullCheck):
        return result.model_copy(update=found)
    if full.status is Status.PASSED:
        return result.model_copy(update=found | {"check": full})
    return begun(full, result.precision).model_copy(update={"gpu": result.gpu})


def _scrutiny(check: CheckResult) -> tuple[Diagnostic, ...]:
    """Return a warning for each thing in the binary that raises scrutiny without refusing it."""
    return tuple(
        Diagnostic(severity="warning", message=f"in the candidate's code: {text}")
        for text in check.compiled.flagged
    )


def _bench(
    request: BenchRequest, case: TimedCase, candidate: Program, result: BenchResult
) -> BenchResult:
    """Return `result` with everything that is measured."""
    request.progress("checking the inputs of the timing")
    verified = verify(case, candidate, case.device)
    if isinstance(verified, JudgedRun):
        return _refused(result, verified)
    excluded: tuple[RejectedBaseline, ...] = ()
    while True:
        request.progress("checking the baselines")
        checked = VerifiedProgram(candidate, verified)
        contest = choose_contestants(case, checked, request.baselines, excluded)
        far = disagreement(verified, contest.witness)
        if far is not None:
            return _failed(result, Status.INCORRECT, (far,))
        request.progress(f"timing against {' and '.join(b.path.name for b in contest.baselines)}")
        timed = time_side_by_side(case, contest, request)
        if isinstance(timed, Timed):
            break
        if timed.side == 0:
            found = tuple(map(of_hidden_inputs, timed.outcome.diagnostics))
            return _failed(result, timed.outcome.status, found)
        excluded = (*excluded, _failed_baseline(contest, timed))
    result = result.model_copy(
        update={
            "seed": case.seed,
            "rejected": contest.rejected,
            "timed_outputs": timed.outputs.counts,
        }
    )
    finding = timed.outputs.finding
    if finding is not None:
        return _failed(result, finding.status, (finding.diagnostic,))
    compared, at_limit = faster_alone(timed, comparisons(timed))
    copy, without_copy = _plain_copy(request, case)
    return result.model_copy(
        update={
            **measured_facts(timed),
            "plain_copy": copy,
            "verdict": compared[0].verdict,
            "comparisons": compared,
            "copy_gb_s": case.device.copy_ceiling_gb_s(),
            "diagnostics": (*result.diagnostics, *notes(timed), *at_limit, *without_copy),
        }
    )


def _plain_copy(
    request: BenchRequest, case: TimedCase
) -> tuple[PlainCopy | None, tuple[Diagnostic, ...]]:
    """Return the copy, or why there is none: it decides nothing, so its failure ends nothing."""
    if not request.copies:
        return None, ()
    request.progress("timing a plain copy of as many bytes")
    model = workload_bytes(case.problem, case.workload)
    try:
        return plain_copy(model, case.device, case.settings), ()
    except (InfraError, ToolError) as error:
        words = f"no plain copy was timed beside it: {error}"
        return None, (Diagnostic(severity="note", message=words),)


def _timed_case(request: BenchRequest, device: TimingDevice, settings: Settings) -> TimedCase:
    """Return what all sides share; both seeds are drawn now that the binary is fixed.

    Repeated measurements meet different inputs, and no seed says which.
    """
    seed = secrets.randbits(_SEED_BITS) if request.seed is None else request.seed
    (input_seed,) = draw_hidden_seeds(1)
    return TimedCase(
        problem=request.case.problem,
        workload=request.case.workload,
        input_seed=input_seed,
        seed=seed,
        device=device,
        settings=settings,
        progress=request.progress,
    )


def _failed_baseline(contest: Contest, failure: TimingFailure) -> RejectedBaseline:
    """Return why a library path is out; the reference kernel cannot be."""
    place = (failure.side or 0) - 1
    entry = contest.baselines[place] if place < len(contest.baselines) else None
    if entry is not None and isinstance(entry.side, LibrarySide):
        return timing_rejection(entry.path, failure)
    outcome = failure.outcome
    raise InfraError(
        f"{'the reference kernel' if entry else 'an empty kernel'} fails when it is timed, with "
        f"{outcome.status}{because(outcome.diagnostics)}"
    )


def _refused(result: BenchResult, refused: JudgedRun) -> BenchResult:
    """Return the result of a candidate that is wrong on the inputs of the timing."""
    found = {
        "status": refused.status,
        "mismatch": refused.mismatch,
        "diagnostics": refused.diagnostics,
    }
    check = result.check.model_copy(update=found)
    failed = _failed(result, refused.status, refused.diagnostics)
    return failed.model_copy(update={"check": check})


def _failed(
    result: BenchResult, status: Status, diagnostics: tuple[Diagnostic, ...]
) -> BenchResult:
    return result.model_copy(
        update={"status": status, "diagnostics": (*result.diagnostics, *diagnostics)}
    )


def _refuse_wrong_pairs(request: BenchRequest) -> None:
    if not MIN_PAIRS <= request.min_pairs <= request.max_pairs <= MAX_PAIRS:
        raise ToolError(
            f"pairs {request.min_pairs} to {request.max_pairs}; allowed: "
            f"{MIN_PAIRS} <= least <= most <= {MAX_PAIRS}"
        )


def _refuse_other_check(check: CheckResult, request: CheckRequest, device: TimingDevice) -> None:
    wanted = {
        "kernel": request.case.kernel_id,
        "candidate": request.case.candidate.id,
        "device": device.name,
        "tune": request.case.full_tune,
    }
    for name, value in wanted.items():
        if getattr(check, name) != value:
            raise ToolError(f"the check is of {name} {getattr(check, name)}, not {value}")
