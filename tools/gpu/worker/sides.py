"""A side of a comparison, bound to buffers: one call of it, whatever it is.

A candidate's plan, a library's function and empty kernels become a callable without arguments
that puts one call on the worker's stream, allocates nothing and may be captured.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem import Problem, Workload
from kopt.tools.devices.timer import CandidateSide, EmptySide, LibrarySide, Side

from .context import WorkerContext
from .launcher import LoadedPlan
from .library_side import bind_library

Call = Callable[[], None]


@dataclass(frozen=True)
class CallBinding:
    """What a side is bound to."""

    problem: Problem
    workload: Workload
    addresses: Mapping[str, int]
    """Device address of every tensor, and of every scratch buffer of the side."""


def side_plan(side: Side) -> LaunchPlan | None:
    """Return the plan whose scratch the side needs; None for one that has no scratch."""
    return side.plan if isinstance(side, CandidateSide) else None


def load_side(
    side: CandidateSide | EmptySide, problem: Problem, worker: WorkerContext
) -> LoadedPlan:
    """Return the kernels of a side of kopt's own launches, loaded once in a worker.

    Raises:
        Failure: They do not load, or the device cannot launch them.
    """
    if isinstance(side, EmptySide):
        cubin = worker.helper_cubin("empty_kernel")
        return worker.plans.load(cubin, without_bodies(side.plan), None)
    return worker.plans.load(Path(side.cubin_path), side.plan, problem)


def bind_side(side: Side, binding: CallBinding, worker: WorkerContext) -> Call:
    """Return one call of `side` over the buffers of `binding`; nothing is launched.

    Raises:
        Failure: It cannot be launched on this device.
    """
    if isinstance(side, LibrarySide):
        bound = bind_library(
            side, binding.problem, binding.workload, binding.addresses, worker.stream
        )
        return bound.launch
    return load_side(side, binding.problem, worker).bind(binding.addresses)


def without_bodies(plan: LaunchPlan) -> LaunchPlan:
    """Return the launches of `plan` with empty kernels: same shapes, no arguments, no buffers."""
    launches = tuple(
        launch.model_copy(
            update={
                "kernel": "empty_dependent_kernel" if launch.pdl else "empty_kernel",
                "arguments": (),
            }
        )
        for launch in plan.launches
    )
    return plan.model_copy(update={"launches": launches, "scratch": (), "tensor_maps": ()})
