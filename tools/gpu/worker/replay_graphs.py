"""Captured calls as executable graphs, and what one captured call consists of.

Graphs are captured, never built node by node: only a capture keeps launch attributes such as
clusters and programmatic dependent launch. A capture does not keep buffers alive.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass

from . import driver_graphs
from .driver import CudaError, Stream
from .driver_graphs import Graph, GraphExec
from .failure import step
from .sides import Call


class CallGraph:
    """Calls in a fixed order, replayed with one launch."""

    def __init__(self, calls: Iterable[Call], stream: Stream) -> None:
        """Capture `calls`; none of them runs.

        Raises:
            Failure: A call fails, or cannot be captured.
        """
        self._stream = stream
        graph = capture(calls, stream)
        with step("capture"):
            try:
                self.nodes = driver_graphs.node_count(graph)
                self._executable: GraphExec | None = driver_graphs.instantiate(graph)
            finally:
                driver_graphs.destroy_graph(graph)
            driver_graphs.upload(self._executable, stream)

    def launch(self) -> None:
        """Put all calls on the stream."""
        if self._executable is None:
            raise ValueError("the graph is closed")
        driver_graphs.launch_graph(self._executable, self._stream)

    def close(self) -> None:
        """Give the graph back; it must have ended."""
        if self._executable is not None:
            executable, self._executable = self._executable, None
            driver_graphs.destroy_executable(executable)


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
        Failure: It cannot be captured.
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
