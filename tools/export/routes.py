"""Which builds a kernel needs, and which shape goes to which: one route a variant and cubin.

Only what kopt resolves for a named workload becomes a route, so that every binary of an export is
one that kopt can check. Shapes between the workloads take the route of their variant.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import gpu_for_arch
from kopt.kernels.domain import variant_place
from kopt.kernels.header import Variant
from kopt.kernels.plan_resolver import resolve_plan
from kopt.kernels.problem import Workload

from .exported_kernel import ExportedKernel


@dataclass(frozen=True)
class Route:
    """One build of the device code, and the variant that it is launched by."""

    tag: str
    """Part of file and function names: `h4096`, `variant2`, `all`."""
    variant: int
    """Place in the header, counted from 0."""
    defines: Mapping[str, int]
    """Tune values and KOPT_<AXIS>."""
    fixed: Mapping[str, int]
    """Specialised axes."""
    workloads: tuple[str, ...]


def plan_routes(exported: ExportedKernel) -> tuple[Route, ...]:
    """Return the routes of every workload that the kernel claims, by variant and then by shape.

    Raises:
        ToolError: A workload has no launch plan on the GPU of `exported.arch`.
    """
    groups: dict[tuple[int, tuple[int, ...]], list[Workload]] = {}
    defines: dict[tuple[int, tuple[int, ...]], dict[str, int]] = {}
    for workload in exported.domain:
        key = variant_place(exported.header, workload.axes), _fixed(exported, workload)
        groups.setdefault(key, []).append(workload)
        defines[key] = _defines(exported, workload)
    several = len({variant for variant, _ in groups}) > 1
    routes: list[Route] = []
    for key in sorted(groups):
        variant, values = key
        fixed = dict(zip(exported.header.specialize, values, strict=True))
        words = [f"{axis.lower()}{value}" for axis, value in fixed.items()]
        tag = "_".join(([f"variant{variant + 1}"] if several else []) + words) or "all"
        names = tuple(workload.name for workload in groups[key])
        routes.append(Route(tag, variant, defines[key], fixed, names))
    return tuple(routes)


def variant_of(exported: ExportedKernel, route: Route) -> Variant:
    """Return the variant that `route` launches."""
    return exported.header.variants[route.variant]


def _fixed(exported: ExportedKernel, workload: Workload) -> tuple[int, ...]:
    return tuple(workload.axes[axis] for axis in exported.header.specialize)


def _defines(exported: ExportedKernel, workload: Workload) -> dict[str, int]:
    outcome = resolve_plan(exported.at(workload), gpu_for_arch(exported.arch))
    if outcome.plan is None:
        reason = outcome.diagnostics[0].message
        raise ToolError(
            f"{exported.candidate.name} cannot be exported for {exported.arch}: {reason}"
        )
    return outcome.plan.defines
