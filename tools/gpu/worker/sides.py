"""A side of a comparison, bound to buffers: one call of it, whatever it is.

A candidate's plan, a library's function and empty kernels become a callable without arguments
that puts one call on the worker's stream, with its results in the buffers, and may be captured.
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from kopt.kernels.plan import LaunchPlan
from kopt.kernels.problem import Problem
from kopt.tools.devices.timer import CandidateSide, EmptySide, LibrarySide
from kopt.tools.gpu.messages import ExecuteRequest

from .context import WorkerContext
from .launcher import LoadedPlan
from .library_side import bind_library

Call = Callable[[], None]


def load_side(
    side: CandidateSide | EmptySide, problem: Problem, worker: WorkerContext
) -> LoadedPlan:
    """Return the kernels of a side of kopt's own launches, loaded once in a worker.

    Raises:
        ExecutionFailure: They do not load, or the device cannot launch them.
    """
    if isinstance(side, EmptySide):
        cubin = worker.helper_cubin("empty_kernel")
        return worker.plans.load(cubin, without_bodies(side.plan), None)
    return worker.plans.load(Path(side.cubin_path), side.plan, problem)


def bind_side(request: ExecuteRequest, addresses: Mapping[str, int], worker: WorkerContext) -> Call:
    """Return one call of the side of `request`; nothing is launched.

    Args:
        request: Which side, and for which workload.
        addresses: Device address of every tensor, and of every scratch buffer of the side.
        worker: Its context.

    Raises:
        ExecutionFailure: The side cannot be launched on this device.
    """
    side, problem = request.side, request.problem
    if isinstance(side, LibrarySide):
        bound = bind_library(side, problem, request.workload, addresses, worker.stream)
        return bound.launch_and_deliver
    return load_side(side, problem, worker).bind(addresses)


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
