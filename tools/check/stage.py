"""The correctness stage: compile, then run the cases of the level, then say what was found.

`judge.py` decides, `cases.py` says what is run, the device runs it. No decision here looks at a
clock: what a check finds depends on the source, the level and the hidden seeds alone.
"""

from concurrent.futures import Future, wait
from dataclasses import replace
from time import perf_counter

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import gpu_for_arch
from kopt.config.settings import Settings
from kopt.config.thread_pool import thread_pool
from kopt.kernels.case import Case
from kopt.kernels.case_inputs import drawn_regimes, regimes_left_out
from kopt.kernels.check_result import CheckResult
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.oracle import load_oracle, warm_up
from kopt.kernels.record import Diagnostic
from kopt.kernels.source_screen import screen_source
from kopt.kernels.status import Status
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.devices.device import Device, ExecutionOutcome, Program, is_simulator

from .cases import HIDDEN_SEEDS, Seeds, plan_cases, without_known
from .hidden_seeds import draw_hidden_seeds
from .hidden_shapes import claim_note, draw_hidden_shapes, narrowing_note
from .oracle_memory import refuse_too_large
from .request import CheckPlans, CheckRequest, cubin_paths, make_plans
from .run_cases import BatchResult, CaseBatch, run_cases
from .scalars import fixed_scalars, vary_scalars
from .uses import passed_over, refuse_only_timed, run_workloads

__all__ = ["CheckRequest", "check_candidate"]


def check_candidate(request: CheckRequest, device: Device, settings: Settings) -> CheckResult:
    """Return whether the candidate computes what its problem asks for.

    Raises:
        ToolError: No seeds, an architecture without a data sheet, an oracle at fault, or
            workloads that need more memory than the machine has.
        SetupError: No compiler, or KOPT_HOME cannot be written.
        InfraError: The device failed, not the candidate.
    """
    if not request.seeds:
        raise ToolError("a check needs at least one seed")
    start = perf_counter()
    request.progress("compiling")
    gpu = device.gpu or gpu_for_arch(request.arch)
    refuse_only_timed(request, device)
    plans = make_plans(request, gpu)
    refuse_too_large(request.case.problem, run_workloads(plans, device))
    compiled, prepared = _build(request, plans, device, settings)
    if compiled.status is not Status.PASSED:
        result = BatchResult(compiled.status, diagnostics=compiled.diagnostics)
    elif not plans.plans:
        result = BatchResult(Status.PLAN_ERROR, diagnostics=plans.diagnostics)
    elif prepared is not None:
        result = BatchResult(
            prepared.status, diagnostics=prepared.diagnostics, sandbox=prepared.sandbox
        )
    else:
        batch, simulated = _batches(request, plans, compiled, device)
        if simulated is None:
            result = run_cases(batch, device, settings)
        else:
            from .race_check import run_with_race_check  # the simulator, for such checks alone

            result = run_with_race_check(batch, simulated, device, settings)
        result = _told(request.case, result)
    return CheckResult(
        kernel=request.case.kernel_id,
        candidate=request.case.candidate.id,
        device=device.name,
        level=request.level,
        tune=request.case.full_tune,
        passed_over=passed_over(plans, device),
        regimes_left_out=_left_out(request) if result.workloads else (),
        fixed_scalars=fixed_scalars(request.case.problem, plans.plans.values()),
        compiled=compiled,
        elapsed_s=perf_counter() - start,
        **vars(result),
    )


def _left_out(request: CheckRequest) -> tuple[str, ...]:
    """Return the regimes of which a full check makes no case."""
    if request.level == "quick":
        return ()
    problem = request.case.problem
    return regimes_left_out(problem, load_oracle(problem))


_REFERENCE_IS_WRONG = Diagnostic(
    severity="note",
    message="this is the problem's own reference kernel, so that oracle.py may be what is wrong",
    hint="compare expected() with the kernel for the element above; where terms cancel it needs"
    " `slack` (docs/problems.md)",
)


def _told(case: Case, result: BatchResult) -> BatchResult:
    """Return the result with what to do where a drawn shape failed, or the reference kernel."""
    notes: list[Diagnostic] = []
    failed = [one for one in result.hidden_shapes if one.status is not Status.PASSED]
    elsewhere = [
        one.workload
        for one in result.workloads
        if one.status is not Status.PASSED and one.workload != case.workload.name
    ]
    if failed:
        notes.append(narrowing_note(case, failed[-1].workload))
    elif elsewhere:
        notes.append(claim_note(case, elsewhere[-1]))
    if result.status is Status.INCORRECT and case.is_reference:
        notes.append(_REFERENCE_IS_WRONG)
    return replace(result, diagnostics=(*result.diagnostics, *notes))


def _build(
    request: CheckRequest, plans: CheckPlans, device: Device, settings: Settings
) -> tuple[CompileResult, ExecutionOutcome | None]:
    """Compile, while the device prepares the named workload in a thread of its own."""
    compile_request = CompileRequest(
        case=request.case, archs=(request.arch,), compiler=request.compiler
    )
    plan = plans.plans.get(request.case.workload.name)
    # A device compiles too: it sees no source that the screen refuses.
    if plan is None or screen_source(request.case.candidate):
        return compile_candidate(compile_request, settings), None
    program = Program(request.case.candidate, request.case.problem, plan, arch=request.arch)
    warming: list[Future[None]] = []
    with thread_pool(2, "prepare") as pool:
        preparing = pool.submit(device.prepare, program)
        if request.level == "full":  # which computes; what fails here fails again there
            warming.append(pool.submit(warm_up, request.case.problem))
        compiled = compile_candidate(compile_request, settings)
        wait(warming)  # the pool drops what has not begun
        return compiled, preparing.result()


def _batches(
    request: CheckRequest, plans: CheckPlans, compiled: CompileResult, device: Device
) -> tuple[CaseBatch, CaseBatch | None]:
    """Return the cases of the level and, for a full check on a GPU, the same for the simulator.

    Hidden seeds and shapes are drawn now that the binary is fixed.
    """
    is_full, gpu = request.level == "full", device.gpu or gpu_for_arch(request.arch)
    problem = request.case.problem
    seeds = Seeds(request.seeds, draw_hidden_seeds(HIDDEN_SEEDS) if is_full else ())
    regimes = drawn_regimes(load_oracle(problem))
    planned = plan_cases(problem, run_workloads(plans, device), request.level, seeds, regimes)
    named = without_known(problem, planned, request.case.workload)
    drawn = draw_hidden_shapes(request.case, compiled, gpu, named, regimes)
    every = CheckPlans(drawn.case, {**plans.plans, **drawn.plans})
    final = every.final(drawn.compiled, gpu, simulated=is_simulator(device))
    batch = CaseBatch(
        case=drawn.case,
        plans=final,
        cubins=cubin_paths(drawn.compiled),
        cases=vary_scalars(problem, (*named, *drawn.cases), final),
        progress=request.progress,
        arch=request.arch,
    )
    if not is_full or is_simulator(device):
        return batch, None
    return batch, replace(batch, plans=every.final(drawn.compiled, gpu, simulated=True))
