"""Captured calls as executable graphs, and what one captured call consists of.

Graphs are captured, never built node by node: only a capture keeps launch attributes such as
clusters and programmatic dependent launch. A capture does not keep buffers alive.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from random import Random

from . import driver_graphs
from .driver import CudaError, Stream
from .driver_graphs import Graph, GraphExec
from .failure import step
from .sides import Call


@dataclass(frozen=True)
class Copies:
    """How often a graph is made."""

    count: int
    """Executables."""
    seed: int
    """Decides the order in which launches take them."""


class CallGraph:
    """Calls in a fixed order, replayed with one launch.

    Two executables of one graph differ in speed by up to 0.4 %, always in the same direction: the
    driver puts their launches at different places. What is compared is therefore made several
    times, and launches take all of them in turn, in a new random order each time, so that
    repetition averages that out.
    """

    def __init__(self, calls: Iterable[Call], stream: Stream, copies: Copies | None = None) -> None:
        """Capture `calls`; none of them runs.

        Args:
            calls: What one launch puts on the stream.
            stream: Where.
            copies: Executables to make, for graphs that are compared; None for one.

        Raises:
            ExecutionFailure: A call fails, or cannot be captured.
        """
        chosen = copies or Copies(1, 0)
        self._stream = stream
        self._rng = Random(chosen.seed)
        self._executables: list[GraphExec] = []
        self._waiting: list[GraphExec] = []
        graph = capture(calls, stream)
        try:
            with step("capture"):
                self.nodes = driver_graphs.node_count(graph)
                for _ in range(chosen.count):
                    executable = driver_graphs.instantiate(graph)
                    self._executables.append(executable)
                    driver_graphs.upload(executable, stream)
        except BaseException:
            with suppress(CudaError):  # what failed first is raised
                self.close()
            raise
        finally:
            driver_graphs.destroy_graph(graph)

    def launch(self) -> None:
        """Put all calls on the stream."""
        if not self._executables:
            raise ValueError("the graph is closed")
        if not self._waiting:
            self._waiting = self._rng.sample(self._executables, len(self._executables))
        driver_graphs.launch_graph(self._waiting.pop(), self._stream)

    def close(self) -> None:
        """Give the graph back; it must have ended."""
        while self._executables:
            driver_graphs.destroy_executable(self._executables.pop())


@dataclass(frozen=True)
class CapturedCall:
    """What one call puts on the stream."""

    kernels: tuple[str, ...]
    """In order; mangled if they are C++."""
    allocations: int
    """Nodes that allocate device memory."""


def inspect_call(call: Call, stream: Stream) -> CapturedCall:
    """Capture one call and say what it is; it does not run.

    Raises:
        ExecutionFailure: It cannot be captured.
    """
    graph = capture([call], stream)
    with step("capture"):
        try:
            nodes = driver_graphs.graph_nodes(graph)
        finally:
            driver_graphs.destroy_graph(graph)
    return CapturedCall(
        kernels=tuple(node.kernel for node in nodes if node.kernel is not None),
        allocations=sum(node.kind == "MEM_ALLOC" for node in nodes),
    )


def capture(calls: Iterable[Call], stream: Stream) -> Graph:
    """Return the graph of `calls`; the stream is as before, also after a failure."""
    with step("capture"):
        driver_graphs.begin_capture(stream)
        try:
            for call in calls:
                call()
        except BaseException:
            with suppress(CudaError):  # the capture is void already; what voided it is raised
                driver_graphs.destroy_graph(driver_graphs.end_capture(stream))
            raise
        return driver_graphs.end_capture(stream)
