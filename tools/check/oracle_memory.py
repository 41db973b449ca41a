"""The memory that a check takes: what cannot fit is refused, and an oracle has a limit.

A mistake in an oracle must not take the machine with it. Oracles run in kopt's own process,
because they are trusted; the limit is on the whole process
(RLIMIT_DATA, private writable memory) for as long as an oracle computes.
"""

import resource
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from kopt.config.errors import ToolError
from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.problem import Problem, Workload, tensor_size_bytes
from kopt.tools.sandbox.policy import machine_memory_bytes

from .judged_rows import judged_share

_BYTES_PER_BYTE = 256
"""For each byte of a tensor; packed codes become two float64 values, and steps keep copies."""
_BASE_BYTES = 2 << 30
_lock = threading.Lock()
_active: dict[object, tuple[int, int]] = {}
"""Allowance and limit of each oracle that computes at this moment, in any thread."""
_usual: list[tuple[int, int]] = []
"""The process's own limits, while any oracle computes."""


def allowance_bytes(problem: Problem, workload: Workload) -> int:
    """Return what an oracle may take for the tensors of `workload`."""
    tensors = sum(tensor_size_bytes(tensor, workload.axes) for tensor in problem.tensors)
    return min(_BASE_BYTES + _BYTES_PER_BYTE * tensors, machine_memory_bytes() * 3 // 4)


def refuse_too_large(problem: Problem, workloads: Iterable[Workload]) -> None:
    """Return if this machine can hold what a check of `workloads` needs at the least.

    Raises:
        ToolError: It cannot; the message has the numbers.
    """
    limit = machine_memory_bytes() * 3 // 4
    for workload in workloads:
        needed = _least_bytes(problem, workload)
        if needed > limit:
            raise ToolError(
                f"a check of {problem.kernel_id(workload)} needs at least {needed / 1e9:.0f} GB:"
                " its tensors, what the kernel writes, and the right results in float64. This"
                f" machine has {machine_memory_bytes() / 1e9:.0f} GB: check a smaller workload, or"
                " leave this one out of `where`"
            )


def affordable_jobs(problem: Problem, workloads: Iterable[Workload], jobs: int) -> int:
    """Return how many cases of the largest of `workloads` this machine holds at once, up to `jobs`.

    At least one: `refuse_too_large` has the last word. Comparing two results takes about as much
    again as holding them.
    """
    needed = 2 * max((_least_bytes(problem, workload) for workload in workloads), default=1)
    return max(1, min(jobs, machine_memory_bytes() * 3 // 4 // max(needed, 1)))


def _least_bytes(problem: Problem, workload: Workload) -> int:
    """Return the memory of all tensors, and of what the exact results of judged rows take."""
    total = 0
    share = judged_share(problem, workload)
    for tensor in problem.tensors:
        size = tensor_size_bytes(tensor, workload.axes)
        elements = size // dtype_size_bytes(tensor.dtype)
        # The kernel's own result; the rounded one, a float64 and a bool for each judged element.
        total += size if tensor.role == "in" else size + int(share * (size + 9 * elements))
    return total


@contextmanager
def limited_memory(allowance: int) -> Generator[None]:
    """Let this process take `allowance` bytes more than it has; beyond it numpy raises MemoryError.

    Several threads may do so at once, each with its allowance beside those of the others: the
    largest limit holds until the last of them is done.
    """
    own = object()
    with _lock:
        if not _active:
            _usual.append(resource.getrlimit(resource.RLIMIT_DATA))
        others = sum(given for given, _ in _active.values())
        limit = _data_bytes() + min(allowance + others, machine_memory_bytes())
        _active[own] = (allowance, limit)
        _apply()
    try:
        yield
    finally:
        with _lock:
            del _active[own]
            _apply()
            if not _active:
                _usual.clear()


def _apply() -> None:
    """Set the limit that holds now; a stricter one of the user's stays."""
    ((soft, hard),) = _usual
    wanted = max((limit for _, limit in _active.values()), default=soft)
    if soft != resource.RLIM_INFINITY:
        wanted = min(wanted, soft)
    resource.setrlimit(resource.RLIMIT_DATA, (wanted, hard))


def _data_bytes() -> int:
    """Return the private writable memory of this process."""
    for line in Path("/proc/self/status").read_text("ascii", errors="replace").splitlines():
        if line.startswith("VmData:"):
            return int(line.split()[1]) << 10
    return 0
