"""The launch plans that a check runs: one for each workload of its level."""

from dataclasses import dataclass, field
from pathlib import Path

from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.domain import default_tune, domain_from
from kopt.kernels.header import CandidateHeader
from kopt.kernels.header_parser import parse_header
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.plan_check import with_axis_widths
from kopt.kernels.plan_resolver import PlanTarget, resolve_plan
from kopt.kernels.problem import Workload
from kopt.kernels.record import Diagnostic
from kopt.tools.cuda.planned_build import PlanSource, final_plan, unfit_choice

from .request import CheckRequest


@dataclass(frozen=True)
class CheckPlans:
    """Plans by workload name, or the diagnostics that say why there are none."""

    plans: dict[str, LaunchPlan] = field(default_factory=dict[str, LaunchPlan])
    workloads: tuple[Workload, ...] = ()
    tune: dict[str, int] = field(default_factory=dict[str, int])
    diagnostics: tuple[Diagnostic, ...] = ()
    source: PlanSource | None = None
    """What the plans were made from; None without plans."""


def make_plans(request: CheckRequest, gpu: GpuSpec) -> CheckPlans:
    """Return the plan of the named workload; at level `full` of the rest of the domain too."""
    outcome = parse_header(request.candidate, request.problem)
    if outcome.header is None:
        return CheckPlans(diagnostics=outcome.diagnostics)
    header = outcome.header
    tune = {**default_tune(header), **(request.tune or {})}
    plans: dict[str, LaunchPlan] = {}
    workloads = _workloads(request, header)
    for workload in workloads:
        target = PlanTarget(workload, gpu)
        resolved = resolve_plan(header, request.problem, tune, target)
        if resolved.plan is None:
            found = resolved.diagnostics
            if workload.name != request.workload.name:
                found = (unfit_choice(workload, found, "is claimed by `where`"),)
            return CheckPlans(tune=tune, diagnostics=found)
        plans[workload.name] = resolved.plan
    source = PlanSource(header, request.problem, tune)
    return CheckPlans(plans=plans, workloads=workloads, tune=tune, source=source)


def final_plans(
    plans: CheckPlans, compiled: CompileResult, gpu: GpuSpec, simulated: bool
) -> dict[str, LaunchPlan]:
    """Return the plans by workload as they are launched, each with what its cubin decides.

    When `simulated`, a cooperative grid that asks for `blocks_per_sm` keeps one block on each SM:
    all its threads are resident at once, and the simulator holds few (docs/sim.md).
    """
    source = plans.source
    if source is None:
        return {}
    kernels = {name: build.kernels for build in compiled.builds for name in build.workloads}
    return {
        name: with_axis_widths(plan, kernels.get(name, ()))
        if simulated and any(launch.cooperative for launch in plan.launches)
        else final_plan(plan, kernels.get(name, ()), source, gpu)
        for name, plan in plans.plans.items()
    }


def cubin_paths(compiled: CompileResult) -> dict[str, Path]:
    """Return the cubin that serves each workload."""
    return {name: Path(build.cubin_path) for build in compiled.builds for name in build.workloads}


def _workloads(request: CheckRequest, header: CandidateHeader) -> tuple[Workload, ...]:
    """Return the named workload first, so that its plan is refused before any other's."""
    if request.level == "quick":
        return (request.workload,)
    return domain_from(request.workload, header, request.problem)
