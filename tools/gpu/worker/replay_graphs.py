"""Captured calls as executable graphs, and what one captured call consists of.

Graphs are captured, never built node by node: only a capture keeps launch attributes such as
clusters and programmatic dependent launch. A capture does not keep buffers alive.
"""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from . import driver
from .driver import CudaError, Stream
from .failure import step
from .sides import Call


class CallGraph:
    """Calls in a fixed order, replayed with one launch.

    Two executables of one graph differ in speed by up to 0.4 %, always in the same direction: the
    driver puts their launches at different places. What is compared is therefore made several
    times, and launches take all of them in turn, in a new random order each time, so that
    repetition averages that out.
    """

    def __init__(
        self, calls: Iterable[Call], stream: Stream, copies: int = 1, seed: int = 0
    ) -> None:
        """Capture `calls`; none of them runs.

        Args:
            calls: What one launch puts on the stream.
            stream: Where.
            copies: Executables to make: several for graphs that are compared.
            seed: Decides the order in which launches take them.

        Raises:
            ExecutionFailure: A call fails, or cannot be captured.
        """
        self._stream = stream
        self._rng = Random(seed)
        self._executables: list[int] = []
        self._waiting: list[int] = []
        graph = capture(calls, stream)
        try:
            with step("capture"):
                self.nodes = int(driver.call("cuGraphGetNodes", graph)[1])
                for _ in range(copies):
                    executable = int(driver.call("cuGraphInstantiate", graph, 0))
                    self._executables.append(executable)
                    driver.call("cuGraphUpload", executable, stream)
        except BaseException:
            with suppress(CudaError):  # what failed first is raised
                self.close()
            raise
        finally:
            driver.call("cuGraphDestroy", graph)

    def launch(self) -> None:
        """Put all calls on the stream."""
        if not self._executables:
            raise ValueError("the graph is closed")
        if not self._waiting:
            self._waiting = self._rng.sample(self._executables, len(self._executables))
        driver.call("cuGraphLaunch", self._waiting.pop(), self._stream)

    def close(self) -> None:
        """Give the graph back; it must have ended."""
        while self._executables:
            driver.call("cuGraphExecDestroy", self._executables.pop())


def inspect_call(call: Call, stream: Stream) -> tuple["GraphNode", ...]:
    """Return the nodes of one call, which is captured and does not run.

    Raises:
        ExecutionFailure: It cannot be captured.
    """
    graph = capture([call], stream)
    with step("capture"):
        try:
            return graph_nodes(graph)
        finally:
            driver.call("cuGraphDestroy", graph)


def capture(calls: Iterable[Call], stream: Stream) -> int:
    """Return the graph of `calls`; the stream is as before, also after a failure."""
    with step("capture"):
        mode = driver.enum("CUstreamCaptureMode", "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL")
        driver.call("cuStreamBeginCapture", stream, mode)
        try:
            for call in calls:
                call()
        except BaseException:
            with suppress(CudaError):  # the capture is void already; what voided it is raised
                driver.call("cuGraphDestroy", int(driver.call("cuStreamEndCapture", stream)))
            raise
        return int(driver.call("cuStreamEndCapture", stream))


@dataclass(frozen=True)
class GraphNode:
    """One node of a captured graph."""

    kind: str
    """The driver's name without CU_GRAPH_NODE_TYPE_: KERNEL, MEMSET, MEMCPY, MEM_ALLOC, …"""
    kernel: str | None
    """Name of a kernel node's function, mangled if it is C++."""


def graph_nodes(graph: int) -> tuple[GraphNode, ...]:
    """Return every node of `graph`, in the order in which the driver lists them."""
    _, count = driver.call("cuGraphGetNodes", graph)
    handles, _ = driver.call("cuGraphGetNodes", graph, int(count))
    return tuple(_node(handle) for handle in handles[: int(count)])


def _node(handle: Any) -> GraphNode:
    kind = driver.bindings().CUgraphNodeType(driver.call("cuGraphNodeGetType", handle)).name
    kind = kind.removeprefix("CU_GRAPH_NODE_TYPE_")
    return GraphNode(kind, _kernel_name(handle) if kind == "KERNEL" else None)


def _kernel_name(handle: Any) -> str:
    parameters = driver.call("cuGraphKernelNodeGetParams", handle)
    if int(parameters.func) != 0:
        name = driver.call("cuFuncGetName", parameters.func)
    else:  # launched through the runtime as a CUkernel
        name = driver.call("cuKernelGetName", parameters.kern)
    return bytes(name).decode()
