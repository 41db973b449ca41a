"""What the correctness stage is asked, and the launch plans that it runs: one for each workload."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kopt.config.callbacks import ignore
from kopt.config.gpu_specs import GpuSpec
from kopt.config.settings import DEFAULT_ARCH
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckLevel
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.plan_check import with_axis_widths
from kopt.kernels.plan_resolver import resolve_plan
from kopt.kernels.record import Diagnostic
from kopt.tools.cuda.compile_job import Compiler
from kopt.tools.cuda.planned_build import final_plan, unfit_choice


@dataclass(frozen=True)
class CheckRequest:
    """What is asked of the stage."""

    case: Case
    """`full` checks the rest of the candidate's domain too."""
    level: CheckLevel
    seeds: tuple[int, ...] = (1, 2, 3)
    """Visible seeds, at least one; `quick` uses the first."""
    compiler: Compiler = "nvcc"
    """`nvrtc` where speed matters more than the compiler that ships: the steps of a sweep."""
    arch: str = DEFAULT_ARCH
    progress: Callable[[str], None] = ignore
    """Called with a short line before each step."""


@dataclass(frozen=True)
class CheckPlans:
    """Plans by workload name, or the diagnostics that say why there are none."""

    case: Case
    plans: dict[str, LaunchPlan] = field(default_factory=dict[str, LaunchPlan])
    diagnostics: tuple[Diagnostic, ...] = ()

    def final(
        self, compiled: CompileResult, gpu: GpuSpec, *, simulated: bool
    ) -> dict[str, LaunchPlan]:
        """Return the plans by workload as they are launched, each with what its cubin decides.

        When `simulated`, a cooperative grid that asks for `blocks_per_sm` keeps one block on each
        SM: all its threads are resident at once, and the simulator holds few (docs/sim.md).
        """
        kernels = {name: build.kernels for build in compiled.builds for name in build.workloads}
        return {
            name: with_axis_widths(plan, kernels.get(name, ()))
            if simulated and any(launch.cooperative for launch in plan.launches)
            else final_plan(plan, kernels.get(name, ()), self.case, gpu)
            for name, plan in self.plans.items()
        }


def make_plans(request: CheckRequest, gpu: GpuSpec) -> CheckPlans:
    """Return the plan of the named workload; at level `full` of the rest of the domain too."""
    case = request.case
    plans: dict[str, LaunchPlan] = {}
    workloads = (case.workload,) if request.level == "quick" else case.domain_from_here
    for workload in workloads:
        resolved = resolve_plan(case.at(workload), gpu)
        if resolved.plan is None:
            found = resolved.diagnostics
            if workload.name != case.workload.name:
                found = (unfit_choice(workload, found, "is claimed by `where`"),)
            return CheckPlans(case, diagnostics=found)
        plans[workload.name] = resolved.plan
    return CheckPlans(case, plans)


def cubin_paths(compiled: CompileResult) -> dict[str, Path]:
    """Return the cubin that serves each workload."""
    return {name: Path(build.cubin_path) for build in compiled.builds for name in build.workloads}
