"""What CUDA said, as the status of a candidate; what is the machine's fault is raised instead.

A status needs evidence against the candidate: every code that is not listed here is the machine's.
Sources: the meaning of each code is CUDA's own (cuda.h, CUresult).
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from kopt.config.errors import InfraError
from kopt.kernels.dtypes import dtype_size_bytes
from kopt.kernels.problem import Problem, Workload, tensor_size_bytes
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.devices.device import ExecutionOutcome
from kopt.tools.devices.timer import LibrarySide, Side

from .messages import BufferDamage, Fault

FIND_LINE = "check it with --device sim, which names the line, or with --sanitize"
_WILD = "look for wild pointers, endless recursion and large arrays on the stack; " + FIND_LINE


class _Verdict(NamedTuple):
    status: Status
    hint: str


_WHILE_RUNNING = {
    "ILLEGAL_ADDRESS": _Verdict(
        Status.OUT_OF_BOUNDS, f"an index leaves its buffer by far; {FIND_LINE}"
    ),
    "MISALIGNED_ADDRESS": _Verdict(
        Status.MISALIGNED,
        f"align the address to the width of the access, or use a narrower one; {FIND_LINE}",
    ),
    "LAUNCH_FAILED": _Verdict(
        Status.CRASH,
        "usual causes are a shared-memory access out of bounds, an invalid pointer and a trap; "
        + FIND_LINE,
    ),
    "ILLEGAL_INSTRUCTION": _Verdict(Status.CRASH, _WILD),
    "INVALID_ADDRESS_SPACE": _Verdict(
        Status.CRASH,
        "an instruction for one memory space (global, shared, local) was given an address of "
        f"another; {FIND_LINE}",
    ),
    "INVALID_PC": _Verdict(Status.CRASH, _WILD),
    "HARDWARE_STACK_ERROR": _Verdict(
        Status.CRASH, f"the call stack was corrupted or is too deep; {FIND_LINE}"
    ),
    "ASSERT": _Verdict(Status.CRASH, "an assert() of the kernel does not hold"),
    "TENSOR_MEMORY_LEAK": _Verdict(
        Status.CRASH, "deallocate all tensor memory before the kernel ends"
    ),
    "LAUNCH_TIMEOUT": _Verdict(
        Status.TIMEOUT, "look for loops that do not end, or for far more work than is needed"
    ),
}
"""Errors of a kernel at work, whichever call reports them."""

_SIZES = "change grid, block, cluster or shared memory in the header"
_AT_LAUNCH = {
    "INVALID_VALUE": _SIZES,
    "LAUNCH_OUT_OF_RESOURCES": "too many registers or threads per block: use a smaller block, "
    "__launch_bounds__, or max_registers in the header",
    "COOPERATIVE_LAUNCH_TOO_LARGE": "not all blocks fit at once: derive the grid from "
    "blocks_per_sm * SM_COUNT",
    "INVALID_CLUSTER_SIZE": "the grid must be a multiple of the cluster, which has at most 8 "
    "blocks and must fit on the SMs of one GPC",
    "NOT_SUPPORTED": _SIZES,
    "NOT_PERMITTED": _SIZES,
    "OUT_OF_MEMORY": "the kernel's local memory does not fit: mind large arrays on the stack",
    "INVALID_IMAGE": "the cubin cannot be loaded; was it compiled for this GPU?",
    "NO_BINARY_FOR_GPU": "compile it for this GPU: --arch",
    "INVALID_SOURCE": "the cubin cannot be loaded; was it compiled for this GPU?",
    "SHARED_OBJECT_SYMBOL_NOT_FOUND": "a symbol is declared but nowhere defined",
    "NOT_FOUND": 'a kernel of the plan must be extern "C" and defined in the file',
    "INVALID_RESOURCE_CONFIGURATION": _SIZES,
}
"""Refusals of `load`, `encode`, `launch` and `capture`: all are launch_error."""

_NOT_CAPTURED = (
    "a call must launch on the current stream only, allocate nothing and wait for nothing"
)
_AT_CAPTURE = {
    f"STREAM_CAPTURE_{name}": _NOT_CAPTURED
    for name in (
        "UNSUPPORTED",
        "INVALIDATED",
        "MERGE",
        "UNMATCHED",
        "UNJOINED",
        "ISOLATION",
        "IMPLICIT",
        "WRONG_THREAD",
    )
}
"""How a library's call fails that cannot be put into a graph."""


def fault_outcome(fault: Fault, level: str | None, owns_memory: bool) -> ExecutionOutcome:
    """Return the status that a fault means for the side that was run.

    Args:
        fault: What the worker reports.
        level: Sandbox level of the worker.
        owns_memory: Whether most of the device memory asked for is the candidate's own scratch,
            so that running out of it is the candidate's doing.

    Raises:
        InfraError: The device or the driver failed, not what ran on it.
    """
    verdict = _verdict(fault, owns_memory)
    if verdict is None:
        raise InfraError(
            f"the GPU failed during {_step(fault)}, which says nothing about the kernel: "
            f"{fault.detail}; see nvidia-smi and dmesg"
        )
    diagnostic = Diagnostic(
        message=f"{_step(fault)} ended with {fault.detail}", hint=verdict.hint or None
    )
    return ExecutionOutcome(verdict.status, (diagnostic,), sandbox=level)


def owns_memory(side: Side, problem: Problem, workload: Workload) -> bool:
    """Return whether a side's own scratch asks for more device memory than the tensors do."""
    if isinstance(side, LibrarySide):
        return False
    scratch_bytes = sum(prod(s.shape) * dtype_size_bytes(s.dtype) for s in side.plan.scratch)
    return scratch_bytes > sum(tensor_size_bytes(t, workload.axes) for t in problem.tensors)


def damage_outcome(damage: Sequence[BufferDamage], level: str | None) -> ExecutionOutcome:
    """Return the status of an execution that changed bytes it may not write; at least one entry.

    A write outside comes first: what it hit by chance, an input perhaps, only follows from it.
    """
    outside = [entry for entry in damage if entry.where != "inside"]
    status = Status.OUT_OF_BOUNDS if outside else Status.INPUT_MUTATED
    diagnostics = tuple(_describe(entry) for entry in (outside or damage))
    return ExecutionOutcome(status, diagnostics, sandbox=level)


def timeout_outcome(timeout_s: float, level: str | None) -> ExecutionOutcome:
    """Return the status of an execution that was killed after `timeout_s` seconds."""
    diagnostic = Diagnostic(
        message=f"the kernels did not end within {timeout_s:g} s and were killed",
        hint="look for loops that do not end, barriers that not all threads reach, and for blocks "
        f"that wait for blocks that cannot be resident; {FIND_LINE}",
    )
    return ExecutionOutcome(Status.TIMEOUT, (diagnostic,), sandbox=level)


def _verdict(fault: Fault, owns_memory: bool) -> _Verdict | None:
    """Return what a fault says about the side that ran; None if it is the machine's."""
    name = fault.code.removeprefix("CUDA_ERROR_")
    if name in _WHILE_RUNNING:
        return _WHILE_RUNNING[name]
    if fault.during == "library" and name == fault.code:
        return _Verdict(Status.LAUNCH_ERROR, "")  # an exception of its own: it cannot run here
    if fault.during == "allocate":
        if name == "OUT_OF_MEMORY" and owns_memory:
            return _Verdict(Status.LAUNCH_ERROR, "make the scratch buffers of the header smaller")
        return None
    if fault.during == "run":
        return None
    known = {**_AT_LAUNCH, **(_AT_CAPTURE if fault.during in ("capture", "library") else {})}
    return _Verdict(Status.LAUNCH_ERROR, known[name]) if name in known else None


def _step(fault: Fault) -> str:
    step = {
        "load": "loading the cubin",
        "encode": "encoding a tensor map",
        "allocate": "allocating device memory",
        "launch": "the launch",
        "run": "the run",
        "capture": "the capture into a graph",
        "library": "the library's call",
    }[fault.during]
    return step if fault.launch is None else f"{step} (launch {fault.launch + 1} of the plan)"


def _describe(damage: BufferDamage) -> Diagnostic:
    plural = "byte" if damage.changed_bytes == 1 else "bytes"
    if damage.where == "inside":
        return Diagnostic(
            message=f"input `{damage.buffer}` was written: {damage.changed_bytes} {plural} "
            f"changed, the first at offset {damage.first_byte}",
            hint="write to a scratch buffer instead",
        )
    if damage.where == "idle":
        return Diagnostic(
            message=f"a timed call wrote `{damage.buffer}` of another call: "
            f"{damage.changed_bytes} {plural} changed",
            hint="every call must write its own buffers only",
        )
    if damage.where == "after":
        place = f"byte {damage.first_byte} behind its end"
    else:
        place = f"byte {-damage.first_byte} before its start"
    return Diagnostic(
        message=f"a write outside `{damage.buffer}`: {damage.changed_bytes} guard {plural} "
        f"changed, the first at {place}",
        hint=f"guard the index; mind the last row and the last vector; {FIND_LINE}",
    )
