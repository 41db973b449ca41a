"""The problem's reference kernel as a side: compiled, planned and verified like a candidate.

It is trusted no further than that. Where it fails, the problem or the machine is at fault, never
the candidate that was to be compared with it.
"""

from dataclasses import dataclass

from kopt.config.errors import InfraError, ToolError
from kopt.kernels.bench_result import BaselinePath
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.record import Diagnostic, because
from kopt.kernels.status import Status
from kopt.tools.check.request import CheckRequest, cubin_paths, make_plans
from kopt.tools.check.run_case import JudgedRun
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.devices.device import Program
from kopt.tools.devices.timer import CandidateSide, Side

from .timed_case import TimedCase, Verified, verify

REFERENCE = "reference"
"""Name of this baseline in results."""

_MACHINE_FAULTS = (Status.TIMEOUT, Status.CRASH, Status.LAUNCH_ERROR)


@dataclass(frozen=True)
class BaselineSide:
    """A baseline with its name in results."""

    path: BaselinePath
    side: Side
    differences: tuple[str, ...] = ()
    """Why it is not like for like, as far as is known before it is captured."""


def candidate_side(program: Program) -> CandidateSide:
    """Return `program`, which has a cubin, as the timer is given it."""
    return CandidateSide(plan=program.plan, cubin_path=str(program.cubin_path))


def launched_program(case: TimedCase, request: CheckRequest, compiled: CompileResult) -> Program:
    """Return the candidate of `request` as it is launched on the case's device.

    Raises:
        ToolError: `compiled` has no cubin for the workload and this device.
    """
    plan: LaunchPlan | None = None
    cubin = cubin_paths(compiled).get(case.workload.name)
    if cubin is not None:
        plans = make_plans(request, case.gpu).final(compiled, case.gpu, simulated=False)
        plan = plans.get(case.workload.name)
    if plan is None or cubin is None:
        builds = ", ".join(f"{build.arch}: {build.workloads}" for build in compiled.builds)
        raise ToolError(
            f"no cubin of {request.case.candidate.name} for {case.kernel} on {request.arch}; "
            f"compiled: {builds or 'nothing'}"
        )
    return Program(request.case.candidate, case.problem, plan, cubin)


@dataclass(frozen=True)
class VerifiedProgram:
    """A candidate, or the reference kernel, that is right on the timed inputs."""

    program: Program
    verified: Verified


def reference_kernel(case: TimedCase, candidate: VerifiedProgram | None = None) -> VerifiedProgram:
    """Return the verified reference kernel: `candidate` itself, where it is that.

    Raises:
        ToolError: reference.cu does not compile, does not serve the workload, or is wrong.
        InfraError: It cannot be run on this device.
    """
    request = CheckRequest(
        case=Case(
            case.problem, case.workload, read_candidate(case.problem.folder / "reference.cu")
        ),
        level="quick",
        arch=case.device.facts.arch,
    )
    compiled = compile_candidate(
        CompileRequest(case=request.case, archs=(request.arch,)),
        case.settings,
    )
    if compiled.status is not Status.PASSED:
        raise ToolError(_message(case, compiled.status, compiled.diagnostics))
    program = launched_program(case, request, compiled)
    if candidate is not None and candidate_side(candidate.program) == candidate_side(program):
        return candidate
    verified = verify(case, program, case.device)
    if isinstance(verified, JudgedRun):
        message = _message(case, verified.status, verified.diagnostics)
        raise (InfraError if verified.status in _MACHINE_FAULTS else ToolError)(message)
    return VerifiedProgram(program, verified)


def reference_path(program: Program) -> BaselinePath:
    """Return what results say of the reference kernel, before it is captured."""
    launches = program.plan.launches
    return BaselinePath(name=REFERENCE, pdl=any(launch.pdl for launch in launches))


def _message(case: TimedCase, status: Status, diagnostics: tuple[Diagnostic, ...]) -> str:
    path = case.problem.folder / "reference.cu"
    return f"{path} cannot be a baseline for {case.workload.name}: {status}{because(diagnostics)}"
