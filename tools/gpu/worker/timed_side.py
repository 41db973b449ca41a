"""One side of a timing session: bound to every buffer set, called once, then captured."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from kopt.tools.devices.timer import LibrarySide, Side, SideFacts

from . import driver
from .buffer_sets import BufferSets, SetData
from .context import WorkerContext
from .failure import step
from .library_side import BoundLibrary, bind_library
from .replay_graphs import CallGraph, Copies, inspect_call
from .sides import Call, load_side

MOST_EXECUTABLES = 8
_LEAST_EXECUTABLES = 2
_EXECUTABLE_CALLS = 2048
"""Calls in all executables of a side together; making one of 100 calls takes about 1 ms."""


@dataclass(frozen=True)
class TimedSide:
    """A side that can be replayed."""

    graph: CallGraph
    """One call for each set, in replay order; made several times."""
    warm_call: Call
    """Over the set that no replay uses."""
    calls: tuple[Call, ...]
    """What was captured: a library's tensors and workspaces must live as long as the graph."""
    facts: SideFacts


@dataclass(frozen=True)
class SideSite:
    """Where sides are built."""

    data: SetData
    worker: WorkerContext
    resources: ExitStack
    """Of the session."""


def build_side(number: int, side: Side, sets: BufferSets, site: SideSite) -> TimedSide:
    """Bind, call once and capture; the graph closes with the resources of `site`.

    The one plain call comes first: lazily loaded or compiled kernels are then there, and a kernel
    that fails does so outside of a graph.

    Args:
        number: Place of the side in the session, which decides its scratch.
        side: Which.
        sets: Filled.
        site: What all sides of the session share.

    Raises:
        Failure: The side cannot be bound, launched or captured.
    """
    stream = site.worker.stream
    library: str | None = None
    allocations = 0
    if isinstance(side, LibrarySide):
        bound = _bind_library(side, sets, sets.warm_set, site)
        warm_call: Call = bound.launch
        library = bound.library
        _call_once(warm_call, site)
        with step("run"):
            allocations = bound.count_allocations()
            driver.synchronize_stream(stream)
        calls = [_bind_library(side, sets, k, site).launch for k in range(sets.count)]
    else:
        loaded = load_side(side, site.data.problem, site.worker)
        warm_call = loaded.bind(sets.plan_addresses(sets.warm_set, number))
        _call_once(warm_call, site)
        calls = [loaded.bind(sets.plan_addresses(k, number)) for k in range(sets.count)]
    captured = inspect_call(warm_call, stream)
    copies = Copies(_executables(sets.count), seed=site.data.seed + number)
    graph = CallGraph(calls, stream, copies)
    site.resources.callback(graph.close)
    facts = SideFacts(
        nodes_per_call=graph.nodes / sets.count,
        kernels=captured.kernels,
        library=library,
        allocations=max(allocations, captured.allocations),
    )
    return TimedSide(graph, warm_call, tuple(calls), facts)


def _executables(sets: int) -> int:
    """Return how many executables a graph of that many calls is worth: few of a large one."""
    return max(_LEAST_EXECUTABLES, min(MOST_EXECUTABLES, _EXECUTABLE_CALLS // sets))


def _bind_library(side: LibrarySide, sets: BufferSets, index: int, site: SideSite) -> BoundLibrary:
    data = site.data
    addresses = sets.tensor_addresses(index)
    return bind_library(side, data.problem, data.workload, addresses, site.worker.stream)


def _call_once(call: Callable[[], None], site: SideSite) -> None:
    call()
    with step("run"):
        driver.synchronize_stream(site.worker.stream)
