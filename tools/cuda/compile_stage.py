"""The compile stage: a candidate to cubins and everything that is known of them without a GPU.

It never raises for what a candidate did wrong: a mistake in the header, the source or the cubin is
a status with diagnostics. It launches nothing.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import Settings
from kopt.config.thread_pool import thread_pool
from kopt.kernels.case import Case
from kopt.kernels.compile_result import Build, CompileResult, Occupancy
from kopt.kernels.domain import unserved_variants
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.record import Diagnostic
from kopt.kernels.source_screen import screen_source
from kopt.kernels.status import Status

from .compile_job import CompileContext, Compiler
from .compile_unit import UnitOutcome, compile_unit
from .cubin_screen import trap_flag
from .occupancy import launch_occupancy
from .planned_build import PlannedBuild, checked_plans, plan_builds
from .toolchain import HOW_TO_INSTALL, find_toolchain

_ARCH = re.compile(r"sm_\d{2,3}[af]?")
COMPILE_LIMIT_S = 60.0
"""Wall time after which one compiler process is stopped."""


@dataclass(frozen=True)
class CompileRequest:
    """What to compile."""

    case: Case
    """The occupancy at its workload is reported; the whole domain is compiled."""
    archs: tuple[str, ...]
    """sm_100a and the like."""
    compiler: Compiler = "nvcc"
    """`nvrtc` is the fast path; what it cannot compile goes to nvcc."""
    limit_s: float = COMPILE_LIMIT_S


@dataclass(frozen=True)
class _Built:
    """A planned build with what the compiler made of it."""

    planned: PlannedBuild
    outcome: UnitOutcome


def compile_candidate(request: CompileRequest, settings: Settings) -> CompileResult:
    """Return the cubins of `request` with their facts, or why there are none.

    Each set of defines that the domain needs is compiled once per architecture, several at once.

    Raises:
        ToolError: An architecture is unknown.
        SetupError: No compiler, no sandbox, or a cache folder that cannot be written.
        InfraError: The machine failed under the compile; it may be tried again.
    """
    _check_archs(request.archs)
    case = request.case
    if case.header is None:
        return _result(request, Status.PLAN_ERROR, case.parsed.diagnostics)
    screened = screen_source(case.candidate)
    if any(diagnostic.severity == "error" for diagnostic in screened):
        return _result(request, Status.REFUSED, screened)
    planned = plan_builds(case, request.archs)
    if planned.mistakes:
        return _result(request, Status.PLAN_ERROR, planned.mistakes)
    context = CompileContext(request.compiler, find_toolchain(settings), settings, request.limit_s)
    outcomes = run_parallel(
        [partial(compile_unit, build.job(case), context) for build in planned.builds],
        settings.jobs,
    )
    built = [_Built(*pair) for pair in zip(planned.builds, outcomes, strict=True)]
    notes = (*case.parsed.diagnostics, *screened, *planned.left_out.values())
    result = _judge(request, built, notes)
    return _with_evidence(result.model_copy(update={"left_out": tuple(planned.left_out)}), built)


def _check_archs(archs: Sequence[str]) -> None:
    if not archs:
        raise ToolError("no architecture given; e.g. sm_100a")
    for arch in archs:
        if not _ARCH.fullmatch(arch):
            raise ToolError(f"{arch!r} is no architecture; written like sm_100a or sm_90")


def _judge(
    request: CompileRequest, built: Sequence[_Built], notes: Sequence[Diagnostic]
) -> CompileResult:
    """Return the result of all builds: that of the first failure, or the facts of all."""
    for status in (Status.TIMEOUT, Status.PLAN_ERROR, Status.COMPILE_ERROR, Status.REFUSED):
        failed = [one for one in built if one.outcome.unit.status == status]
        if failed:
            return _result(request, status, _merged(failed, notes))
    occupancy: list[Occupancy] = []
    mistakes: dict[Diagnostic, None] = {}
    for one in built:
        kernels = one.outcome.unit.kernels
        plans, found = checked_plans(one.planned, kernels, request.case)
        mistakes.update(dict.fromkeys((*found, *_unawaited(one, plans))))
        if not mistakes and plans[0].workload == request.case.workload.name:
            by_name = {kernel.name: kernel for kernel in kernels}
            occupancy += [
                launch_occupancy(launch, by_name[launch.kernel], one.planned.gpu)
                for launch in plans[0].launches
            ]
    if mistakes:
        return _result(request, Status.PLAN_ERROR, tuple(mistakes))
    passed = _result(request, Status.PASSED, _merged(built, notes))
    header, problem = request.case.header, request.case.problem
    unserved = () if header is None else unserved_variants(header, problem)
    return passed.model_copy(
        update={
            "occupancy": tuple(occupancy),
            "unserved": tuple(variant.when for variant in unserved),
        }
    )


def _flags(one: _Built) -> list[str]:
    """Return what was flagged, without the trap that a cooperative launch never meets.

    The grid barrier of cooperative groups contains one.
    """
    launches = [launch for plan in one.planned.plans for launch in plan.launches]
    plain = {launch.kernel for launch in launches if not launch.cooperative}
    barriers = {trap_flag(launch.kernel) for launch in launches if launch.kernel not in plain}
    return [note for note in one.outcome.unit.flagged if note not in barriers]


def _unawaited(one: _Built, plans: Sequence[LaunchPlan]) -> list[Diagnostic]:
    """Return an error for each dependent launch whose kernel never waits for its producer."""
    waits = one.outcome.unit.producer_waits
    found: list[Diagnostic] = []
    for launch in {launch.kernel: launch for plan in plans for launch in plan.launches}.values():
        if not launch.pdl:
            continue
        if waits is None:
            raise SetupError(f"pdl: true can be checked only with nvdisasm; {HOW_TO_INSTALL}")
        if launch.kernel not in waits:
            message = f"pdl is true, but kernel {launch.kernel} never waits for its producer"
            hint = "wait before the first read of a tensor that is not static, or drop pdl"
            found.append(Diagnostic(message=message, line=launch.line, hint=hint))
    return found


def _merged(built: Sequence[_Built], notes: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    own = (diagnostic for one in built for diagnostic in one.outcome.unit.diagnostics)
    return tuple(dict.fromkeys((*own, *notes)))


def _result(
    request: CompileRequest, status: Status, diagnostics: tuple[Diagnostic, ...]
) -> CompileResult:
    return CompileResult(
        status=status,
        kernel=request.case.kernel_id,
        candidate=request.case.candidate.id,
        chosen_tune=_chosen(request.case),
        diagnostics=diagnostics,
    )


def _chosen(case: Case) -> dict[str, int]:
    """Return the tune values that no header says by itself: all of them if it cannot be read."""
    return {
        name: value for name, value in case.tune.items() if case.default_tune.get(name) != value
    }


def _with_evidence(result: CompileResult, built: Sequence[_Built]) -> CompileResult:
    """Return `result` with the cubins that exist, what was flagged, and where the log lies."""
    fresh = [one.outcome.unit for one in built if not one.outcome.cached]
    kept = [one for one in built if one.outcome.entry is not None]
    first = next((one for one in kept if one.outcome.unit.status != Status.PASSED), None)
    logged = first or (kept[0] if kept else None)
    entry = logged.outcome.entry if logged else None
    builds = [_build(one) for one in kept if one.outcome.unit.cubin_sha256 is not None]
    return result.model_copy(
        update={
            "builds": tuple(builds),
            "flagged": tuple(dict.fromkeys(note for one in built for note in _flags(one))),
            "log_path": str(entry.log_path) if entry else None,
            "sandbox": fresh[0].sandbox if fresh else None,
        }
    )


def _build(one: _Built) -> Build:
    unit, entry = one.outcome.unit, one.outcome.entry
    if entry is None or unit.cubin_sha256 is None:
        raise ValueError("only a kept unit with a cubin is a build")
    return Build(
        arch=one.planned.arch,
        defines=one.planned.defines,
        workloads=tuple(plan.workload for plan in one.planned.plans),
        cubin_sha256=unit.cubin_sha256,
        cubin_path=str(entry.cubin_path),
        module_global_bytes=unit.module_global_bytes,
        kernels=unit.kernels,
        toolchain=unit.toolchain,
        compile_s=unit.compile_s,
        cached=one.outcome.cached,
    )


T = TypeVar("T")


def run_parallel(jobs: Sequence[Callable[[], T]], threads: int) -> list[T]:
    """Return the results of `jobs` in their order, at most `threads` of them running at once.

    The first exception of a job is raised as it is; jobs that have not begun by then never do.
    """
    if len(jobs) <= 1 or threads <= 1:
        return [job() for job in jobs]
    with thread_pool(threads, "compile") as pool:
        return [future.result() for future in [pool.submit(job) for job in jobs]]
