"""The worker's end of a timing session: shared buffer sets, one graph a side, replays.

It measures and hands out; order, number and meaning of the replays are the benchmark's, and no
expected output is ever here. What CUDA or a library says against a side is part of the answers.

Source: docs/measurement.md.
"""

from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

from kopt.tools.devices.device import Arrays
from kopt.tools.devices.timer import LibrarySide, Replays, Side, SideFacts, TimingFacts
from kopt.tools.gpu.array_file import MappedFile, overwrite_arrays
from kopt.tools.gpu.draw_names import draw_name
from kopt.tools.gpu.messages import (
    BufferDamage,
    CollectAnswer,
    OpenTimingRequest,
    ReplayAnswer,
    WarmAnswer,
)

from . import driver
from .buffer_sets import BufferSets
from .clocks import NvmlTelemetry
from .context import WorkerContext
from .driver import CudaError, Stream
from .failure import ExecutionFailure, step
from .library_side import BoundLibrary, bind_library
from .replay_graphs import CallGraph, inspect_call
from .replayer import Replayer
from .sides import Call, load_side

MOST_EXECUTABLES = 8
_LEAST_EXECUTABLES = 2
_EXECUTABLE_CALLS = 2048
"""Calls in all executables of a side together; making one of 100 calls takes about 1 ms."""


@dataclass(frozen=True)
class TimedSide:
    """A captured side, ready for replays."""

    graph: CallGraph
    """One call for each set, in replay order; made several times."""
    warm_call: Call
    """Over the set that no replay uses."""
    calls: tuple[Call, ...]
    """What was captured: a library's tensors and workspaces must live as long as the graph."""
    facts: SideFacts
    deliver: CallGraph | None = None
    """Brings what a library returned in memory of its own into the sets; None: it is there."""


def build_side(
    number: int, side: Side, sets: BufferSets, worker: WorkerContext, resources: ExitStack
) -> TimedSide:
    """Bind, call once and capture; the graph closes with `resources`.

    The one plain call comes first: lazily loaded or compiled kernels are then there, and a kernel
    that fails does so outside of a graph.

    Args:
        number: Place of the side in the session, which decides its scratch.
        side: Which.
        sets: Filled.
        worker: Its context.
        resources: Everything that the session frees at its end.

    Raises:
        ExecutionFailure: The side cannot be bound, launched or captured.
    """
    stream = worker.stream
    library: str | None = None
    allocations = 0
    bounds: list[BoundLibrary] = []
    if isinstance(side, LibrarySide):
        bound = _bind_library(side, sets, sets.warm_set, stream)
        warm_call: Call = bound.launch
        library = bound.library
        _call_once(warm_call, stream)
        with step("run"):
            allocations = bound.count_allocations()
            driver.synchronize_stream(stream)
        bounds = [_bind_library(side, sets, k, stream) for k in range(sets.count)]
        calls = [one.launch for one in bounds]
    else:
        loaded = load_side(side, sets.request.problem, worker)
        warm_call = loaded.bind(sets.plan_addresses(sets.warm_set, number))
        _call_once(warm_call, stream)
        calls = [loaded.bind(sets.plan_addresses(k, number)) for k in range(sets.count)]
    nodes = inspect_call(warm_call, stream)
    seed = sets.request.layout_seed + number
    graph = CallGraph(calls, stream, _executables(sets.count), seed)
    resources.callback(graph.close)
    facts = SideFacts(
        nodes_per_call=graph.nodes / sets.count,
        kernels=tuple(node.kernel for node in nodes if node.kernel is not None),
        library=library,
        allocations=max(allocations, sum(node.kind == "MEM_ALLOC" for node in nodes)),
    )
    deliver = None
    if any(one.results for one in bounds):
        deliver = CallGraph((one.deliver for one in bounds), stream)
        resources.callback(deliver.close)
    return TimedSide(graph, warm_call, tuple(calls), facts, deliver)


def _executables(sets: int) -> int:
    """Return how many executables a graph of that many calls is worth: few of a large one."""
    return max(_LEAST_EXECUTABLES, min(MOST_EXECUTABLES, _EXECUTABLE_CALLS // sets))


def _bind_library(side: LibrarySide, sets: BufferSets, index: int, stream: Stream) -> BoundLibrary:
    request = sets.request
    addresses = sets.tensor_addresses(index)
    return bind_library(side, request.problem, request.workload, addresses, stream)


def _call_once(call: Call, stream: Stream) -> None:
    call()
    with step("run"):
        driver.synchronize_stream(stream)


MIN_WARMUP_REPLAYS = MOST_EXECUTABLES
"""Each executable of a graph once, at least."""
_LONGEST_WARMUP_US = 250_000.0
"""After so long no further round of warm-up begins: clocks follow within milliseconds."""
_OUTPUT_FILE = "timed_outputs"


@dataclass(frozen=True)
class TimingEnd:
    """An open session; its methods raise `ExecutionFailure` for what CUDA or a library says."""

    sets: BufferSets
    replayer: Replayer
    sides: tuple[TimedSide, ...]
    facts: TimingFacts
    telemetry: NvmlTelemetry
    resources: ExitStack
    """Everything on the device, to be freed in reverse."""

    def replay(self, sequence: Sequence[int]) -> ReplayAnswer:
        """Replay sides by their places, each after a restore."""
        before = self.telemetry.read()
        times_us = self.replayer.replay([self.sides[number].graph for number in sequence])
        after = self.telemetry.read()
        for deliver in [self.sides[number].deliver for number in sequence[-1:]]:
            if deliver is not None:  # after the clock: a user of the library pays for no such copy
                with step("run"):
                    deliver.launch()
        return ReplayAnswer(replays=Replays(us_per_call=times_us, before=before, after=after))

    def collect(self, folder: Path, places: Sequence[int] | None = None) -> CollectAnswer:
        """Write the outputs that the last replay left to a file in `folder`; look for damage.

        Args:
            folder: Of the worker.
            places: Sets, by their places in replay order; None: all.

        Raises:
            OSError: The outputs cannot be written.
        """
        chosen = range(self.sets.count) if places is None else places
        damage: list[BufferDamage] = []
        outputs = overwrite_arrays(
            folder, _OUTPUT_FILE, self.sets.read_back(chosen, damage, warm=places is None)
        )
        return CollectAnswer(
            rotations=tuple(self.sets.rotations[place] for place in chosen),
            outputs=outputs,
            damage=tuple(damage),
        )

    def warm(self, number: int) -> WarmAnswer:
        """Time a side over a set that no replay uses: what `collect` gives stays as it was."""
        return WarmAnswer(us_per_call=self.replayer.warm_us(self.sides[number].warm_call))

    def close(self) -> None:
        """Free everything.

        Raises:
            CudaError: What the driver reports then, after all else has been tried.
        """
        self.resources.close()


def open_timing(request: OpenTimingRequest, folder: Path, worker: WorkerContext) -> TimingEnd:
    """Return an open session.

    Raises:
        ExecutionFailure: A side or the device failed; nothing of the session is left.
        InfraError: The inputs cannot be read, or do not fit their tensors.
    """
    inputs = _draws(request, MappedFile(folder, request.inputs))
    resources = ExitStack()
    try:
        return _build(request, inputs, worker, resources)
    except BaseException:
        with suppress(CudaError):  # a lost context refuses everything; what is raised says why
            resources.close()
        raise


def _draws(request: OpenTimingRequest, file: MappedFile) -> tuple[Arrays, ...]:
    """Return the inputs of each draw."""
    tensors = [tensor for tensor in request.problem.tensors if tensor.role != "out"]
    dtypes = {
        draw_name(draw, tensor.name): tensor.dtype
        for draw in range(request.draws)
        for tensor in tensors
    }
    arrays = file.arrays(dtypes)
    return tuple(
        {tensor.name: arrays[draw_name(draw, tensor.name)] for tensor in tensors}
        for draw in range(request.draws)
    )


@contextmanager
def _of_side(number: int) -> Generator[None]:
    try:
        yield
    except ExecutionFailure as failure:
        failure.side = number
        raise


def _build(
    request: OpenTimingRequest,
    inputs: Sequence[Arrays],
    worker: WorkerContext,
    resources: ExitStack,
) -> TimingEnd:
    sets = BufferSets(request, inputs, worker)
    resources.callback(sets.close)
    replayer = Replayer(sets, worker, resources)
    sides: list[TimedSide] = []
    for number, side in enumerate(request.sides):
        with _of_side(number):
            sides.append(build_side(number, side, sets, worker, resources))
            replayer.replay([sides[-1].graph])  # alone, so that a failure has its name
    # It lies idle among the others now: a call that writes other sets than its own shows there.
    sets.restore(sets.warm_set)
    graphs = [side.graph for side in sides]
    call_us = _warm_up(replayer, graphs, -(-request.warmup_calls // sets.count))
    facts = TimingFacts(
        sets=sets.count,
        set_bytes=sets.set_bytes,
        rotation_over_l2=sets.count * sets.set_bytes / worker.facts.l2_bytes,
        sides=tuple(
            side.facts.model_copy(update={"call_us": one})
            for side, one in zip(sides, call_us, strict=True)
        ),
    )
    return TimingEnd(sets, replayer, tuple(sides), facts, worker.telemetry, resources)


def _warm_up(replayer: Replayer, graphs: list[CallGraph], rounds: int) -> tuple[float, ...]:
    """Replay all graphs in turn and return the microseconds of a call of each.

    A first round has been before. `rounds` are made in all, or fewer where one takes long: as many
    as a graph has executables at least.
    """
    first = MIN_WARMUP_REPLAYS - 1
    began = perf_counter()
    times_us = replayer.replay(graphs * first)
    round_us = (perf_counter() - began) * 1e6 / first
    affordable = int((_LONGEST_WARMUP_US - first * round_us) / round_us)
    replayer.replay(graphs * max(0, min(rounds - 1 - first, affordable)))
    return tuple(median(times_us[place :: len(graphs)]) for place in range(len(graphs)))
