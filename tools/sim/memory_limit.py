"""The memory that one execution on the simulator may hold, from the sizes of its buffers.

A kernel cannot allocate, so that what an honest one takes is known before it starts: buffers, what
the race detector keeps of each element, and a stack for each thread that is resident.
"""

from math import prod

from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.plan import Launch
from kopt.kernels.problem import tensor_size_bytes
from kopt.kernels.record import Diagnostic
from kopt.tools.devices.device import Program

_CELL_BYTES = 24
"""runtime/stamp.h: sizeof(Cell), one for each element of 1 to 4 bytes that can be written."""
_STACK_BYTES = 32 << 10
"""A quarter of what a thread may have (runtime/state.h: kStackBytes); most use a page or two."""
_SHARED_BYTES = 4 << 20
"""Shared memory of a resident block with its cells, and tensor memory (2.5 MiB) with its own."""
_TOGETHER_THREADS = 1 << 16
"""runtime/state.h: kMaxResidentThreads."""
_BASE_BYTES = 1 << 30
"""For the runtime, its traces, and whatever else an honest kernel makes it keep."""


def memory_limit_bytes(program: Program, workers: int, together: bool = False) -> int:
    """Return what the processes of an execution may hold together.

    Args:
        program: What is executed.
        workers: Processes.
        together: Whether blocks of plain launches are resident together.
    """
    plan = program.plan
    buffers = sum(
        tensor_size_bytes(tensor, plan.axes) * (1 if tensor.role == "in" else 1 + _CELL_BYTES)
        for tensor in program.problem.tensors
    )
    scratch = sum(prod(s.shape) * dtype_size_bytes(s.dtype) for s in plan.scratch)
    resident = max(
        (_resident_bytes(launch, workers, together) for launch in plan.launches), default=0
    )
    return _BASE_BYTES + buffers + scratch * (1 + _CELL_BYTES) + resident


def memory_fault(limit_bytes: int) -> Diagnostic:
    """Return what is said of a kernel that was stopped at `limit_bytes`."""
    return Diagnostic(
        message=f"the kernel took more than {limit_bytes / (1 << 30):.1f} GiB on the simulator and"
        " was stopped; its tensors, scratch and threads need far less",
        hint="look for local arrays of many KiB in each of many threads, recursion, and"
        " asynchronous copies that are never waited for",
    )


def _resident_bytes(launch: Launch, workers: int, together: bool) -> int:
    # A cooperative launch is one group of blocks, which one process runs.
    blocks = prod(launch.grid) if launch.cooperative else prod(launch.cluster) * workers
    if together:
        blocks = max(blocks, min(prod(launch.grid), _TOGETHER_THREADS // prod(launch.block)))
    return blocks * (prod(launch.block) * _STACK_BYTES + _SHARED_BYTES)
