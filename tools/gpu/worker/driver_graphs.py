"""Events and graphs of the driver API, each call checked; `driver.py` has the rest."""

from dataclasses import dataclass
from typing import Any, NewType

from .driver import Stream, bindings, call, enum

Event = NewType("Event", int)
Graph = NewType("Graph", int)
GraphExec = NewType("GraphExec", int)


def create_event() -> Event:
    """Return an event that takes times."""
    return Event(int(call("cuEventCreate", enum("CUevent_flags", "CU_EVENT_DEFAULT").value)))


def record_event(event: Event, stream: Stream) -> None:
    """Take the time when the work of `stream` so far is done."""
    call("cuEventRecord", event, stream)


def elapsed_us(start: Event, end: Event) -> float:
    """Return the microseconds between two events that have happened."""
    return float(call("cuEventElapsedTime", start, end)) * 1e3


def destroy_event(event: Event) -> None:
    """Give an event back."""
    call("cuEventDestroy", event)


def begin_capture(stream: Stream) -> None:
    """Record what this thread puts on `stream` from now on instead of running it."""
    mode = enum("CUstreamCaptureMode", "CU_STREAM_CAPTURE_MODE_THREAD_LOCAL")
    call("cuStreamBeginCapture", stream, mode)


def end_capture(stream: Stream) -> Graph:
    """Return what was recorded; raises what invalidated the capture."""
    return Graph(int(call("cuStreamEndCapture", stream)))


def instantiate(graph: Graph) -> GraphExec:
    """Return an executable copy of `graph`."""
    return GraphExec(int(call("cuGraphInstantiate", graph, 0)))


def upload(executable: GraphExec, stream: Stream) -> None:
    """Bring a graph to the device ahead of its first launch."""
    call("cuGraphUpload", executable, stream)


def launch_graph(executable: GraphExec, stream: Stream) -> None:
    """Put a graph on `stream`."""
    call("cuGraphLaunch", executable, stream)


def destroy_graph(graph: Graph) -> None:
    """Give a captured graph back; its executable copies stay."""
    call("cuGraphDestroy", graph)


def destroy_executable(executable: GraphExec) -> None:
    """Give an executable graph back."""
    call("cuGraphExecDestroy", executable)


@dataclass(frozen=True)
class GraphNode:
    """One node of a captured graph."""

    kind: str
    """The driver's name without CU_GRAPH_NODE_TYPE_: KERNEL, MEMSET, MEMCPY, MEM_ALLOC, …"""
    kernel: str | None
    """Name of a kernel node's function, mangled if it is C++."""


def graph_nodes(graph: Graph) -> tuple[GraphNode, ...]:
    """Return every node of `graph`, in the order in which the driver lists them."""
    count = node_count(graph)
    handles, _ = call("cuGraphGetNodes", graph, count)
    return tuple(_node(handle) for handle in handles[:count])


def node_count(graph: Graph) -> int:
    """Return how many nodes `graph` has."""
    _, count = call("cuGraphGetNodes", graph)
    return int(count)


def _node(handle: Any) -> GraphNode:
    kind = bindings().CUgraphNodeType(call("cuGraphNodeGetType", handle)).name
    kind = kind.removeprefix("CU_GRAPH_NODE_TYPE_")
    return GraphNode(kind, _kernel_name(handle) if kind == "KERNEL" else None)


def _kernel_name(handle: Any) -> str:
    parameters = call("cuGraphKernelNodeGetParams", handle)
    if int(parameters.func) != 0:
        name = call("cuFuncGetName", parameters.func)
    else:  # launched through the runtime as a CUkernel
        name = call("cuKernelGetName", parameters.kern)
    return bytes(name).decode()
