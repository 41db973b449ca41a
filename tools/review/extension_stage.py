"""The review of a torch extension: its outputs are judged as a candidate's are, its speed is not.

Its host code runs in the process that would time it, so that no time from there proves anything.
What is wrong refutes a claim, and so does what physics leaves to it; nothing confirms one.
"""

import tempfile
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.plan import Argument, Launch, LaunchPlan
from kopt.kernels.record import Diagnostic
from kopt.kernels.review_result import ReviewResult, SpeedLimit
from kopt.kernels.status import Status
from kopt.tools.bench.reference_side import REFERENCE
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate
from kopt.tools.check.cases import HIDDEN_SEEDS, Seeds, plan_cases
from kopt.tools.check.hidden_seeds import draw_hidden_seeds
from kopt.tools.check.run_cases import BatchResult, CaseBatch, run_cases
from kopt.tools.check.scalars import fixed_scalars, vary_scalars
from kopt.tools.devices.examination import ExaminesItself
from kopt.tools.devices.timer import TimingDevice

from .extension_call import ExtensionCall
from .extension_device import ExtensionBuild, ExtensionDevice, ExtensionPlace
from .judgement import claimed_comparison
from .speed_limit import timed_limit
from .stage import Reviewer, ReviewRequest, begun, reviewed_untimed

UNTIMED = (
    "what it computes is right, but no time of it can be believed: its own host code runs in the"
    " process that would time it. Move its kernels into a candidate (`kopt show ID --example`) and"
    " review that"
)
_NO_GPU = Diagnostic(
    message="a torch extension runs on a GPU alone, and none is used here",
    hint="review it with --device cuda:0, or move its kernels into a candidate, which the simulator"
    " runs (kopt show ID --example)",
)


@dataclass(frozen=True)
class ExtensionRequest:
    """An extension, how it is called, and what is said of it."""

    review: ReviewRequest
    """Its case's candidate is the extension; it claims the named workload alone."""
    call: ExtensionCall


def review_extension(request: ExtensionRequest, where: Reviewer) -> ReviewResult:
    """Return whether a claim about an extension is refuted, or cannot be told.

    Raises:
        ToolError: The problem's oracle or reference kernel is at fault, or the GPU is elsewhere.
        SetupError: torch is not installed, or KOPT_HOME cannot be written.
        InfraError: The device failed, not the extension.
    """
    start = perf_counter()
    asked = request.review
    if where.timer is None:
        check = _check(asked.case, where, Status.UNSUPPORTED_ON_SIM, (_NO_GPU,))
        result = begun(asked, check, where, form="torch_extension")
    else:
        if isinstance(where.timer, ExaminesItself):
            raise ToolError(
                f"a torch extension is built and called beside its GPU, and {where.timer.name} is"
                " on another machine: call kopt review there"
            )
        _require_torch()
        check = _checked(request, where.timer, where)
        result = begun(asked, check, where, form="torch_extension")
        if check.status is Status.PASSED:
            asked.keep(result)
            limit = _measured_limit(asked, where.timer, where.settings)
            result = reviewed_untimed(asked, result, limit, UNTIMED)
    return result.model_copy(update={"elapsed_s": perf_counter() - start})


def _require_torch() -> None:
    if find_spec("torch") is None:
        raise SetupError(
            "it cannot be told whether the claim holds: a torch extension needs torch, which this"
            " Python lacks (pip install 'kopt-mcp[gpu]')"
        )


def _checked(request: ExtensionRequest, timer: TimingDevice, where: Reviewer) -> CheckResult:
    """Build the extension, then call it on all cases of the level until one fails."""
    asked = request.review
    place = ExtensionPlace(where.settings, timer.facts.arch, timer.facts.uuid)
    with tempfile.TemporaryDirectory(prefix="kopt-extension-") as folder:
        asked.progress("building the extension")
        is_module = "." not in request.call.function
        build = place.build(asked.case.candidate, is_module, Path(folder))
        if build.failure is not None:
            return _check(asked.case, where, Status.COMPILE_ERROR, build.diagnostics)
        return checked_extension(request, build, place, where)


def checked_extension(
    request: ExtensionRequest, build: ExtensionBuild, place: ExtensionPlace, where: Reviewer
) -> CheckResult:
    """Return whether a built extension computes what the problem asks for at one workload."""
    asked, start = request.review, perf_counter()
    device = ExtensionDevice(build, request.call, place, where.device.gpu, where.device.name)
    case = asked.case
    plans = {case.workload.name: _plan(case, request.call)}
    # Drawn now that it is built: what it does cannot depend on them.
    seeds = Seeds(visible=(1, 2, 3), hidden=draw_hidden_seeds(HIDDEN_SEEDS))
    planned = plan_cases(case.problem, (case.workload,), "full", seeds)
    cases = vary_scalars(case.problem, planned, plans)
    batch = CaseBatch(case=case, plans=plans, cubins={}, cases=cases, progress=asked.progress)
    found = run_cases(batch, device, where.settings)
    fixed = fixed_scalars(case.problem, plans.values())
    result = _check(case, where, found.status, found.diagnostics, found)
    elapsed_s = perf_counter() - start
    return result.model_copy(update={"fixed_scalars": fixed, "elapsed_s": elapsed_s})


def _plan(case: Case, call: ExtensionCall) -> LaunchPlan:
    """Return a plan that names the scalars of the call, so that hidden cases vary them."""
    given = tuple(
        Argument(kind="float32", name=scalar.name, value=scalar.value)
        for scalar in case.problem.scalars_at(case.workload)
        if scalar.name in call.arguments
    )
    launch = Launch(kernel=call.function, grid=(1, 1, 1), block=(1, 1, 1), arguments=given)
    axes = case.workload.axes
    return LaunchPlan(workload=case.workload.name, axes=axes, defines={}, launches=(launch,))


def _check(
    case: Case,
    where: Reviewer,
    status: Status,
    diagnostics: tuple[Diagnostic, ...],
    found: BatchResult | None = None,
) -> CheckResult:
    compiled = CompileResult(
        status=Status.COMPILE_ERROR if status is Status.COMPILE_ERROR else Status.PASSED,
        kernel=case.kernel_id,
        candidate=case.candidate.id,
    )
    batch = found or BatchResult(status, diagnostics=diagnostics)
    return CheckResult(
        kernel=case.kernel_id,
        candidate=case.candidate.id,
        device=where.device.name,
        level="full",
        compiled=compiled,
        elapsed_s=0.0,
        **vars(batch),
    )


def _measured_limit(
    asked: ReviewRequest, timer: TimingDevice, settings: Settings
) -> SpeedLimit | None:
    """Return the limit by the claim's baseline, timed beside the reference kernel."""
    problem = asked.case.problem
    case = Case(problem, asked.case.workload, read_candidate(problem.folder / "reference.cu"))
    is_auto = asked.claim.against in (None, REFERENCE)
    timing = BenchRequest(case, baselines="auto" if is_auto else "every", progress=asked.progress)
    bench = bench_candidate(timing, timer, settings)
    compared = claimed_comparison(asked.claim, bench)
    return None if compared is None else timed_limit(case, bench, compared, timer.gpu)
