"""One checked execution in the worker: fill, poison, call once, look for damage, give outputs back.

Poison lies in outputs and scratch (`buffers.py`), and in what a kernel finds without writing it:
shared memory, local memory, registers (`leftovers.py`).

The worker never holds expected outputs; whether the values are right is judged elsewhere.

Programmatic dependent launch lets a kernel start before the one before it has ended. In a check
nothing else would notice that it reads too early, since its inputs lie there long before. So a
kernel before the candidate writes the inputs late, and a candidate that does not wait for it finds
other values.
"""

import ctypes
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from kopt.config.errors import InfraError
from kopt.kernels.plan import Launch
from kopt.kernels.problem import Problem
from kopt.tools.devices.device import Arrays
from kopt.tools.devices.timer import LibrarySide
from kopt.tools.gpu.array_file import MappedFile, overwrite_arrays
from kopt.tools.gpu.messages import BufferDamage, ExecuteAnswer, ExecuteRequest

from . import driver, driver_launch
from .arguments import ArgumentBlock
from .buffers import LATE_PREFIX, CallBuffers, CallData
from .context import WorkerContext
from .driver import Module, Stream
from .failure import ExecutionFailure, step
from .launcher import BoundPlan
from .library_side import import_library
from .sides import Call, bind_side

DELAY_CYCLES = 200_000
"""About 0.1 ms at 2 GHz: the next launch comes from the host some 10 us later and must start
within that time."""
_LAUNCH = Launch(kernel="late_producer", grid=(8, 1, 1), block=(256, 1, 1), arguments=())
_MOST_COPIES = 128
"""MOST_COPIES of late_producer.cu; the entries fill most of the 4 KiB of parameters."""


@dataclass(frozen=True)
class LateCopy:
    """One input that is brought late."""

    source: int
    target: int
    size_bytes: int


class _Copy(ctypes.Structure):
    _fields_ = (
        ("source", ctypes.c_uint64),
        ("target", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
    )


class _Copies(ctypes.Structure):
    """Struct Copies of late_producer.cu."""

    _fields_ = (
        ("count", ctypes.c_uint64),
        ("delay_cycles", ctypes.c_uint64),
        ("entries", _Copy * _MOST_COPIES),
    )


def late_inputs(problem: Problem) -> tuple[str, ...]:
    """Return the inputs that an earlier kernel may have written: all but the static ones."""
    return tuple(t.name for t in problem.tensors if t.role != "out" and not t.static)


def copies_parameter(copies: Sequence[LateCopy]) -> bytes:
    """Return the kernel's only parameter.

    Raises:
        InfraError: There are more copies than it has room for.
    """
    if len(copies) > _MOST_COPIES:
        raise InfraError(f"{len(copies)} inputs are too many for the late producer")
    parameter = _Copies(count=len(copies), delay_cycles=DELAY_CYCLES)
    for number, copy in enumerate(copies):
        parameter.entries[number] = _Copy(copy.source, copy.target, copy.size_bytes)
    return bytes(parameter)


class LateProducer:
    """The kernel, loaded."""

    def __init__(self, cubin: Path, stream: Stream) -> None:
        """Load `cubin` (late_producer.cu).

        Raises:
            ExecutionFailure: It does not load.
        """
        with step("load"):
            module = driver.call("cuModuleLoadData", cubin.read_bytes())
            self._function = driver.get_function(Module(int(module)), _LAUNCH.kernel)
        self._config = driver_launch.launch_config(_LAUNCH, stream)

    def launch(self, copies: Sequence[LateCopy]) -> None:
        """Launch; what follows on the stream with the PDL attribute starts beside it.

        Raises:
            ExecutionFailure: The driver refuses.
        """
        block = ArgumentBlock([copies_parameter(copies)])  # the driver copies it during the call
        with step("launch"):
            driver_launch.launch(self._function, self._config, block.address)


_OUTPUT_FILE = "outputs"


@dataclass(frozen=True)
class StagedExecution:
    """An execution as far as it can be made ready without the GPU."""

    data: CallData
    buffers: CallBuffers

    def close(self) -> None:
        """Give the host's memory back."""
        self.buffers.close()


def stage(request: ExecuteRequest, folder: Path, worker: WorkerContext) -> StagedExecution:
    """Make the images of the buffers of `request`, and import what a library side needs.

    Raises:
        ExecutionFailure: There is not enough memory.
        InfraError: The inputs cannot be read, or do not fit their tensors.
    """
    if isinstance(request.side, LibrarySide):
        import_library(request.problem, request.side)
    dtypes = {tensor.name: tensor.dtype for tensor in request.problem.tensors}
    inputs = MappedFile(folder, request.inputs).arrays(dtypes)
    late = late_inputs(request.problem) if request.late_producer else ()
    data = CallData(request, inputs, late)
    with step("allocate"):
        buffers = CallBuffers(data, worker.arena, worker.pinned, secrets.randbits(64))
    return StagedExecution(data, buffers)


def execute(staged: StagedExecution, folder: Path, worker: WorkerContext) -> ExecuteAnswer:
    """Run the side of what was staged once, and close it.

    Raises:
        ExecutionFailure: CUDA or the library says something against it.
        OSError: The outputs cannot be written.
    """
    try:
        outputs, damage = _execute(staged, worker)
        # Their reader has copied those of the execution before.
        written = overwrite_arrays(folder, _OUTPUT_FILE, outputs.items())
    finally:
        staged.close()
    return ExecuteAnswer(damage=damage, outputs=written)


def _execute(
    staged: StagedExecution, worker: WorkerContext
) -> tuple[Arrays, tuple[BufferDamage, ...]]:
    """Return outputs that stand until `staged` is closed, and damage."""
    data, buffers = staged.data, staged.buffers
    request = data.request
    with step("allocate"):
        buffers.upload(worker.stream)
    # A library may plan when it is bound, by page tables and lengths that it reads.
    call = bind_side(request, buffers.addresses, worker)
    if request.late_producer:
        call = _behind_late_producer(call, data, buffers, worker)
    elif isinstance(call, BoundPlan) and not request.finds_leftovers:
        call = _over_leftovers(call, request, worker)
    _run(call, worker.stream)
    with step("run"):
        return buffers.read_back(worker.stream)


def _over_leftovers(call: BoundPlan, request: ExecuteRequest, worker: WorkerContext) -> Call:
    def call_over() -> None:
        _leave(request, worker)
        call(partial(_leave, request, worker))

    return call_over


def _leave(request: ExecuteRequest, worker: WorkerContext) -> None:
    with step("load"):
        leftovers = worker.leftovers
    leftovers.leave(request.poison)


def _run(call: Call, stream: Stream) -> None:
    try:
        call()
    except ExecutionFailure:
        # What was launched before may itself fail; the next execution must not be blamed for it.
        with step("run"):
            driver.synchronize_stream(stream)
        raise
    with step("run"):
        driver.synchronize_stream(stream)


def _behind_late_producer(
    call: Call, data: CallData, buffers: CallBuffers, worker: WorkerContext
) -> Call:
    producer = LateProducer(worker.helper_cubin("late_producer"), worker.stream)
    copies = [
        LateCopy(
            source=buffers.addresses[f"{LATE_PREFIX}{name}"],
            target=buffers.addresses[name],
            size_bytes=data.inputs[name].nbytes,
        )
        for name in data.late
    ]

    def call_behind() -> None:
        # A fill between the two kernels would make the second wait for the first to end.
        if isinstance(call, BoundPlan):
            call.zero_scratch()
            _leave(data.request, worker)
            producer.launch(copies)
            call.launch_kernels(partial(_leave, data.request, worker))
        else:
            producer.launch(copies)
            call()

    return call_behind
