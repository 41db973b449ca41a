"""The stand-in of the driver with graphs and events: captured work is kept, and runs at a launch.

Events take a clock that the test sets: `us_per_launch` microseconds pass with each kernel.
"""

import ctypes
import sys
from collections.abc import Callable
from enum import IntEnum
from types import SimpleNamespace
from typing import Any

import pytest

from kopt.tools.gpu.worker import driver, driver_launch

from .host_cuda import CUresult, HostCuda

Work = Callable[[], object]
SUCCESS = CUresult.CUDA_SUCCESS


class NodeType(IntEnum):
    """Kinds of graph nodes that occur here."""

    CU_GRAPH_NODE_TYPE_KERNEL = 0
    CU_GRAPH_NODE_TYPE_MEMCPY = 1
    CU_GRAPH_NODE_TYPE_MEMSET = 2


class HostTimingCuda(HostCuda):
    """What `import cuda.bindings.driver` gives."""

    CUgraphNodeType = NodeType

    def __init__(self) -> None:
        """Start without graphs, at time zero."""
        super().__init__()
        self.us_per_launch = 2.0
        self.restored: list[tuple[int, int]] = []
        """Address and bytes of every fill that ran, in order."""
        self.launched_graphs: list[int] = []
        """Handle of every executable graph that ran, in order."""
        self.live: set[int] = set()
        """Handles of graphs, executable graphs and events, addresses of memory, all in use."""
        self.copies_late = False
        """Whether copies to the host happen no earlier than the stream is waited for."""
        self._late: list[tuple[int, int, int]] = []
        self._handles: dict[int, Any] = {}
        self._next = 1000
        self._capture: list[tuple[NodeType, str, Work]] | None = None
        self._now_us = 0.0
        self.CUevent_flags = self.CUlimit
        self.CUstreamCaptureMode = self.CUlimit

    # Work that a capture keeps

    def cuMemcpyDtoDAsync(self, target: int, source: int, size: int, _: int) -> tuple[Any, ...]:
        """Copy."""
        copy = NodeType.CU_GRAPH_NODE_TYPE_MEMCPY
        return self._put(copy, "", lambda: ctypes.memmove(target, source, size))

    def cuMemcpyDtoHAsync(self, target: int, source: int, size: int, _: int) -> tuple[Any, ...]:
        """Copy at once, or late."""
        if self.copies_late:
            self._late.append((target, source, size))
            return (self.pending,)
        return super().cuMemcpyDtoHAsync(target, source, size, _)

    def cuStreamSynchronize(self, _: int) -> tuple[Any, ...]:
        """Bring what is late, and tell what a kernel did."""
        for copy in self._late:
            ctypes.memmove(*copy)
        self._late.clear()
        return super().cuStreamSynchronize(_)

    def cuMemsetD8Async(self, address: int, byte: int, size: int, _: int) -> tuple[Any, ...]:
        """Fill."""

        def fill() -> None:
            self.restored.append((address, size))
            ctypes.memset(address, byte, size)

        return self._put(NodeType.CU_GRAPH_NODE_TYPE_MEMSET, "", fill)

    def cuLaunchKernelEx(self, config: Any, function: int, *parameters: int) -> tuple[Any, ...]:
        """Launch."""
        launch = super().cuLaunchKernelEx

        def run() -> None:
            self._now_us += self.us_per_launch
            launch(config, function, *parameters)

        if self._functions[function] in self.refused:
            return (self.refused[self._functions[function]],)
        kernel = NodeType.CU_GRAPH_NODE_TYPE_KERNEL
        return self._put(kernel, self._functions[function], run)

    def _put(self, kind: NodeType, name: str, work: Work) -> tuple[Any, ...]:
        if self._capture is None:
            work()
        else:
            self._capture.append((kind, name, work))
        return (self.pending if self._capture is None else SUCCESS,)

    # Graphs

    def cuStreamBeginCapture(self, *_: Any) -> tuple[Any, ...]:
        """Keep work from now on."""
        assert self._capture is None
        self._capture = []
        return (SUCCESS,)

    def cuStreamEndCapture(self, _: int) -> tuple[Any, ...]:
        """Give what was kept."""
        assert self._capture is not None
        nodes, self._capture = self._capture, None
        return SUCCESS, self._hold(nodes)

    def cuGraphInstantiate(self, graph: int, _: int) -> tuple[Any, ...]:
        """Copy a graph."""
        return SUCCESS, self._hold(list(self._handles[graph]))

    def cuGraphUpload(self, *_: int) -> tuple[Any, ...]:
        """Do nothing."""
        return (SUCCESS,)

    def cuGraphLaunch(self, executable: int, _: int) -> tuple[Any, ...]:
        """Run what was kept."""
        assert executable in self.live
        self.launched_graphs.append(executable)
        for _, _, work in self._handles[executable]:
            work()
        return (self.pending,)

    def cuGraphGetNodes(self, graph: int, count: int = 0) -> tuple[Any, ...]:
        """Give nodes, or their number."""
        nodes = self._handles[graph]
        return SUCCESS, nodes[:count], len(nodes)

    def cuGraphNodeGetType(self, node: Any) -> tuple[Any, ...]:
        """Give the kind."""
        return SUCCESS, node[0]

    def cuGraphKernelNodeGetParams(self, node: Any) -> tuple[Any, ...]:
        """Give the function."""
        return SUCCESS, SimpleNamespace(func=self._functions.index(node[1]) + 1)

    def cuFuncGetName(self, function: int) -> tuple[Any, ...]:
        """Give the name of a node's function."""
        return SUCCESS, self._functions[function - 1].encode()

    def cuGraphDestroy(self, graph: int) -> tuple[Any, ...]:
        """Forget."""
        return self._drop(graph)

    def cuGraphExecDestroy(self, executable: int) -> tuple[Any, ...]:
        """Forget."""
        return self._drop(executable)

    # Events and memory

    def cuEventCreate(self, _: int) -> tuple[Any, ...]:
        """Give an event that has not happened."""
        return SUCCESS, self._hold(None)

    def cuEventRecord(self, event: int, _: int) -> tuple[Any, ...]:
        """Take the time."""
        self._handles[event] = self._now_us
        return (SUCCESS,)

    def cuEventElapsedTime(self, start: int, end: int) -> tuple[Any, ...]:
        """Give milliseconds."""
        return SUCCESS, (self._handles[end] - self._handles[start]) / 1e3

    def cuEventDestroy(self, event: int) -> tuple[Any, ...]:
        """Forget."""
        return self._drop(event)

    def cuMemAlloc(self, size_bytes: int) -> tuple[Any, ...]:
        """Lend memory, and remember that."""
        result, address = super().cuMemAlloc(size_bytes)
        if result == SUCCESS:
            self.live.add(address)
        return result, address

    def cuMemFree(self, address: int) -> tuple[Any, ...]:
        """Take it back."""
        self.live.remove(address)
        return super().cuMemFree(address)

    def cuMemGetInfo(self) -> tuple[Any, ...]:
        """Give what is free."""
        return SUCCESS, self.memory_bytes, self.memory_bytes

    def _hold(self, thing: Any) -> int:
        self._next += 1
        self._handles[self._next] = thing
        self.live.add(self._next)
        return self._next

    def _drop(self, handle: int) -> tuple[Any, ...]:
        self.live.remove(handle)
        return (SUCCESS,)


@pytest.fixture
def host_timing(monkeypatch: pytest.MonkeyPatch) -> HostTimingCuda:
    """The stand-in, in the place of the real bindings."""
    cuda = HostTimingCuda()
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", cuda)
    fresh = driver.bindings.__wrapped__
    for module in (driver, driver_launch):
        monkeypatch.setattr(module, "bindings", fresh)
    return cuda
