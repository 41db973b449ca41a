"""A library's side of a comparison: a function of baseline.py, bound to the worker's own buffers.

The one file that imports torch, and only when a library side is asked for: torch lends the library
tensors over memory that the worker allocated, and nothing else. Nothing is launched or captured
here; that a path works is for the check to find out, not for this file to know.
"""

import importlib
import re
import warnings
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

from kopt.config.errors import ToolError
from kopt.kernels.baseline_loader import load_baseline
from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.precision import Precision
from kopt.kernels.problem import Problem, TensorSpec, Workload, storage_shape
from kopt.tools.devices.timer import LibrarySide
from kopt.tools.gpu.messages import Fault

from .failure import ExecutionFailure

_DEVICE = "cuda:0"  # the worker sees one device
_MESSAGE_CHARACTERS = 300
_TELLING_LINE = re.compile(r"\b(?:error|fatal)\b", re.IGNORECASE)
_TELLING_LINES = 3
_COLOR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class BoundLibrary:
    """A call of a library's function on given buffers, on the stream that it was bound to.

    The first launch of a process may compile for minutes, allocate and synchronize: launch once
    before a capture. Later launches of the same function and shapes can be captured.
    """

    run: Callable[[], object]
    """What the function of baseline.py returned."""
    tensors: Mapping[str, Any]
    """The given buffers as torch's tensors, by the problem's names."""
    entered: Callable[[bool], AbstractContextManager[None]]
    """Given whether a failure is sticky: the stream, the precision, and what failures become."""
    library: str
    """Distributions and versions."""
    results: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What the last launch returned in memory of its own, by the problem's names."""

    def launch(self) -> None:
        """Launch one call.

        Raises:
            ExecutionFailure: The library failed.
        """
        # What raises here may have met a CUDA error: the context is not to be trusted afterwards.
        with self.entered(True):
            made = self.run()
            self.results = cast(Mapping[str, Any], made) if isinstance(made, Mapping) else {}

    def deliver(self) -> None:
        """Copy what the last launch returned in memory of its own into the given buffers.

        Raises:
            ExecutionFailure: A result has another shape than its tensor, or CUDA failed.
        """
        with self.entered(True):
            for name, result in self.results.items():
                self.tensors[name].copy_(result)

    def launch_and_deliver(self) -> None:
        """Launch one call whose results are in the given buffers at its end."""
        self.launch()
        self.deliver()

    def count_allocations(self) -> int:
        """Launch once and return how many allocations of torch make the call unlike a kernel's.

        None where results are returned: a function in torch's own style takes memory from torch's
        allocator, when it is captured and not when it is replayed.

        Raises:
            ExecutionFailure: The library failed.
        """
        before = _allocations()
        self.launch()
        return 0 if self.results else _allocations() - before


def import_library(problem: Problem, side: LibrarySide) -> None:
    """Import torch and the module of a side; what fails here fails again when it is bound."""
    with suppress(Exception):
        _torch()
        load_baseline(problem, side.baseline)


def bind_library(
    side: LibrarySide,
    problem: Problem,
    workload: Workload,
    addresses: Mapping[str, int],
    stream: int,
) -> BoundLibrary:
    """Bind the function that `side` names; its module may be built here, which takes minutes.

    Args:
        side: Which function, with or without programmatic dependent launch.
        problem: Whose baseline.py it is in.
        workload: Decides the shapes.
        addresses: Device address of every tensor of the problem; the memory must outlive the
            result. CuTe DSL kernels want 128-byte alignment.
        stream: CUstream of the context that is current, which must be the primary one: it is the
            only one that torch uses.

    Raises:
        ExecutionFailure: baseline.py or torch cannot be loaded, or has no such path here.
    """
    with _library_step(sticky=False):
        baseline = load_baseline(problem, side.baseline)
        torch = _torch()
        tensors = {
            tensor.name: _tensor(torch, addresses[tensor.name], tensor, workload)
            for tensor in problem.tensors
        }
        scalars = problem.scalar_values(workload)
        external = torch.cuda.ExternalStream(stream, device=_DEVICE)
        _set_float32_products(torch, problem.precision)
        with torch.cuda.stream(external):
            run = baseline.bind(tensors, scalars, side.pdl)

    @contextmanager
    def entered(sticky: bool) -> Generator[None]:
        with _library_step(sticky), torch.cuda.stream(external):
            _set_float32_products(torch, problem.precision)  # whatever another side has set
            yield

    return BoundLibrary(run, tensors, entered, baseline.library)


_TF32: dict[Precision, tuple[bool, bool]] = {
    "ieee": (False, False),
    "tf32": (True, True),
    "torch": (False, True),
}
"""Whether products of matrices, and convolutions, may take TF32."""


def _set_float32_products(torch: Any, precision: Precision) -> None:
    """Set what torch's float32 products do from here on.

    By the names that every torch has: those of torch 2.9 and later follow them.
    """
    matrices, convolutions = _TF32[precision]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # later versions announce other names
        torch.backends.cuda.matmul.allow_tf32 = matrices
        torch.backends.cudnn.allow_tf32 = convolutions


class _DeviceBytes:
    """Device memory as torch takes it from others without a copy.

    Source: the CUDA array interface, version 3; `stream` None: nothing to wait for.
    """

    def __init__(self, address: int, size_bytes: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (size_bytes,),
            "typestr": "|u1",  # it has no bfloat16 or fp8: the tensor is viewed as such afterwards
            "data": (address, False),
            "strides": None,
            "stream": None,
            "version": 3,
        }


def _tensor(torch: Any, address: int, tensor: TensorSpec, workload: Workload) -> Any:
    """Return a torch tensor over the memory at `address`, in storage shape."""
    shape = storage_shape(tensor, workload.axes)
    memory = _DeviceBytes(address, prod(shape) * dtype_size_bytes(tensor.dtype))
    flat = torch.as_tensor(memory, device=_DEVICE)
    return flat.view(getattr(torch, tensor.dtype)).reshape(shape)


def _torch() -> Any:
    """Import torch and let it join the primary context."""
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError as error:
        raise ImportError(f"{error}: pip install 'kopt-mcp[gpu]' brings the baselines") from error
    torch.cuda.init()
    return torch


def _allocations() -> int:
    count: int = _torch().cuda.memory_stats(_DEVICE).get("allocation.all.allocated", 0)
    return count


@contextmanager
def _library_step(sticky: bool) -> Generator[None]:
    """Turn whatever a library raises in the block into an `ExecutionFailure`, `sticky` or not."""
    try:
        yield
    except Exception as error:  # a library's own: its failure is a result, like a candidate's
        code = "baseline.py" if isinstance(error, ToolError) else type(error).__name__
        message = _telling_lines(str(error))
        fault = Fault(during="library", code=code, message=message, sticky=sticky)
        raise ExecutionFailure(fault) from error


def _telling_lines(text: str) -> str:
    """Return the first line, and the first ones that tell of an error.

    A failed build opens with ninja's words, a failed CuTe DSL kernel with the DSL's; what the
    compiler said comes later.
    """
    lines = [line.strip() for line in _COLOR.sub("", text).splitlines() if line.strip()]
    telling = [line for line in lines[1:] if _TELLING_LINE.search(line)]
    return "; ".join([*lines[:1], *telling[:_TELLING_LINES]])[:_MESSAGE_CHARACTERS]
