"""The launch plans that a check runs: one for each workload of its level."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from kopt.config.gpu_specs import gpu_for_arch
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.domain import default_tune, domain
from kopt.kernels.header import CandidateHeader
from kopt.kernels.header_parser import parse_header
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.plan_check import with_axis_widths
from kopt.kernels.plan_resolver import PlanTarget, resolve_plan
from kopt.kernels.problem import Workload
from kopt.kernels.record import Diagnostic

from .request import CheckRequest


@dataclass(frozen=True)
class CheckPlans:
    """Plans by workload name, or the diagnostics that say why there are none."""

    plans: dict[str, LaunchPlan] = field(default_factory=dict[str, LaunchPlan])
    workloads: tuple[Workload, ...] = ()
    tune: dict[str, int] = field(default_factory=dict[str, int])
    diagnostics: tuple[Diagnostic, ...] = ()


def make_plans(request: CheckRequest) -> CheckPlans:
    """Return the plan of the named workload; at level `full` of the rest of the domain too.

    Raises:
        ToolError: No data sheet knows the architecture.
    """
    outcome = parse_header(request.candidate, request.problem)
    if outcome.header is None:
        return CheckPlans(diagnostics=outcome.diagnostics)
    header = outcome.header
    tune = {**default_tune(header), **(request.tune or {})}
    plans: dict[str, LaunchPlan] = {}
    workloads = _workloads(request, header)
    for workload in workloads:
        target = PlanTarget(workload, gpu_for_arch(request.arch))
        resolved = resolve_plan(header, request.problem, tune, target)
        if resolved.plan is None:
            return CheckPlans(tune=tune, diagnostics=resolved.diagnostics)
        plans[workload.name] = resolved.plan
    return CheckPlans(plans=plans, workloads=workloads, tune=tune)


def with_built_widths(
    plans: Mapping[str, LaunchPlan], compiled: CompileResult
) -> dict[str, LaunchPlan]:
    """Return `plans` with axis arguments as wide as the parameters of the cubin of each."""
    kernels = {name: build.kernels for build in compiled.builds for name in build.workloads}
    return {name: with_axis_widths(plan, kernels.get(name, ())) for name, plan in plans.items()}


def _workloads(request: CheckRequest, header: CandidateHeader) -> tuple[Workload, ...]:
    """Return the named workload first, so that its plan is refused before any other's."""
    if request.level == "quick":
        return (request.workload,)
    rest = tuple(
        workload
        for workload in domain(header, request.problem)
        if workload.name != request.workload.name
    )
    return (request.workload, *rest)
