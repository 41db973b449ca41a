"""The job that the simulator's runtime reads: buffers, shared variables, launches, as text lines.

runtime/job.cpp is the reader. Buffers are files in the job's folder: inputs are mapped read-only,
the others shared, so that results come back without a copy.

A TMA descriptor has a form of the simulator's own in the 128 bytes of CUtensorMap, which
<kopt/bulk_copy.cuh> reads in its CPU body. Layout, little-endian: base address u64, rank u8,
element bytes u8, swizzle bytes u8, fill u8 (1 = NaN), 4 bytes of padding, then five each, innermost
dimension first: extents u32, padding u32, strides in bytes u64, box u32, element strides u32.
"""

import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np

from kopt.kernels.dtypes import dtype_size_bytes, numpy_dtype
from kopt.kernels.plan import Argument, Launch, TensorMap
from kopt.kernels.problem import storage_shape
from kopt.tools.devices.device import Arrays, ExecutionRequest

from .program_facts import SimProgram

_FIRST_FRAMES_BYTES = 1024
"""What the runtime's own frames take of a thread's stack before the kernel's: its 64 arguments."""


@dataclass(frozen=True)
class JobFile:
    """A written job."""

    folder: Path
    path: Path
    request: ExecutionRequest

    def read_outputs(self) -> Arrays:
        """Return every `out` and `inout` tensor as the job left it."""
        problem, axes = self.request.program.problem, self.request.program.plan.axes
        return {
            tensor.name: np.fromfile(
                self.folder / tensor.name, dtype=numpy_dtype(tensor.dtype)
            ).reshape(storage_shape(tensor, axes))
            for tensor in problem.tensors
            if tensor.role != "in"
        }


@dataclass(frozen=True)
class Watched:
    """Bytes of a tensor, scratch buffer or shared variable whose accesses are kept."""

    variable: str
    offset: int
    """In bytes from the variable's start."""
    size_bytes: int

    @property
    def line(self) -> str:
        """The place in the job's text."""
        return f"watch {self.variable} {self.offset} {self.size_bytes}"


@dataclass(frozen=True)
class RunMode:
    """How a run goes; all but the number of processes is for a second look (second_look.py)."""

    workers: int
    filler: int | None = None
    """The byte that loads find in shared memory that nothing has written; None: that is a fault."""
    together: bool = False
    """Blocks of plain launches are resident together, as those of cooperative ones are."""
    learns: bool = False
    """Races are no faults, and loads that atomic operations check again are listed."""
    rechecked: tuple[int, ...] = ()
    """Such loads: they may meet atomic operations."""
    watched: Watched | None = None
    """Where a race was found: it is told with both accesses."""

    @property
    def line(self) -> str:
        """The mode in the job's text."""
        filler = -1 if self.filler is None else self.filler
        parts = (filler, int(self.together), int(self.learns), *sorted(self.rechecked))
        return "again " + " ".join(map(str, parts))


def write_job(
    request: ExecutionRequest, program: SimProgram, folder: Path, mode: RunMode
) -> JobFile:
    """Write the buffers and the job into `folder`."""
    problem, plan = request.program.problem, request.program.plan
    lines = [
        f"seed {request.schedule_seed}",
        f"workers {mode.workers}",
        mode.line,
        f"timeout_ms {int(request.timeout_s * 1000)}",
        f"poison {request.poison}",
        f"stack {program.stack_bytes + _FIRST_FRAMES_BYTES}",
        f"constants {program.constants[0]} {program.constants[1]}",
    ]
    if mode.watched is not None:
        lines.append(mode.watched.line)
    if program.access_lines:
        lines.append(f"code {min(program.access_lines)} {max(program.access_lines)}")
    lines += [f"shared {v.name} {v.address} {v.size_bytes}" for v in program.shared]
    numbers: dict[str, int] = {}
    scratch_lines = _scratch_lines(request, folder, program.narrowest_access_bytes)
    for line in (*_tensor_lines(request, folder), *scratch_lines):
        numbers[line.split()[1]] = len(numbers)
        lines.append(line)
    dtypes = {tensor.name: tensor.dtype for tensor in problem.tensors}
    dtypes |= {scratch.name: scratch.dtype for scratch in plan.scratch}
    for tensor_map in plan.tensor_maps:
        numbers[tensor_map.name] = len(numbers)
        path = folder / f"tensor_map.{tensor_map.name}"
        mapped = tensor_map.tensor
        path.write_bytes(encode_tensor_map(tensor_map, numbers[mapped], dtypes[mapped]))
        lines.append(f"buffer {tensor_map.name} in 128 0 1 1 {path}")
    for launch in plan.launches:
        arguments = [_argument(argument, numbers) for argument in launch.arguments]
        lines.append(_launch_line(launch, program.entries[launch.kernel], arguments))
    path = folder / "job.txt"
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return JobFile(folder, path, request)


def _tensor_lines(request: ExecutionRequest, folder: Path) -> list[str]:
    problem, axes = request.program.problem, request.program.plan.axes
    lines: list[str] = []
    for tensor in problem.tensors:
        path = folder / tensor.name
        size = prod(storage_shape(tensor, axes)) * dtype_size_bytes(tensor.dtype)
        if tensor.role == "out":
            np.full(size, request.poison, dtype=np.uint8).tofile(path)
        else:
            np.ascontiguousarray(request.inputs[tensor.name]).tofile(path)
        shift = dtype_size_bytes(tensor.dtype).bit_length() - 1
        initialized = int(tensor.role != "out")
        lines.append(
            f"buffer {tensor.name} {tensor.role} {size} {min(shift, 2)} {initialized}"
            f" {int(tensor.static)} {path}"
        )
    return lines


def _scratch_lines(request: ExecutionRequest, folder: Path, narrowest: int) -> list[str]:
    """Scratch may hold anything: its cells are as fine as the code's accesses."""
    lines: list[str] = []
    for scratch in request.program.plan.scratch:
        item_bytes = dtype_size_bytes(scratch.dtype)
        size = prod(scratch.shape) * item_bytes
        path = folder / f"scratch.{scratch.name}"
        zeroed = scratch.init == "zero"
        np.full(size, 0 if zeroed else request.poison, dtype=np.uint8).tofile(path)
        shift = min(item_bytes, narrowest).bit_length() - 1
        lines.append(f"buffer {scratch.name} scratch {size} {shift} {int(zeroed)} 0 {path}")
    return lines


def _argument(argument: Argument, numbers: dict[str, int]) -> str:
    if argument.kind in ("tensor", "scratch"):
        return f"buffer {numbers[argument.name]}"
    if argument.kind == "tensor_map":
        return f"map {numbers[argument.name]}"
    value = argument.value
    assert value is not None  # every scalar argument of a resolved plan has its number
    packed = (
        struct.pack("<f4x", value) if argument.kind == "float32" else struct.pack("<q", int(value))
    )
    return f"value {int.from_bytes(packed, 'little')}"


def _launch_line(launch: Launch, entry: int, arguments: list[str]) -> str:
    extents = (*launch.grid, *launch.block, *launch.cluster)
    fields = [launch.kernel, entry, *extents, launch.dynamic_smem_bytes]
    fields += [int(launch.cooperative), int(launch.pdl), len(arguments), *arguments]
    return "launch " + " ".join(map(str, fields))


# Where runtime/job.cpp maps the buffers (state.h: kArena, kSlotBits, kSlotLead).
_ARENA = 0x100000000000
_SLOT_BITS = 36
_SLOT_LEAD = 1 << 32


def encode_tensor_map(tensor_map: TensorMap, buffer_number: int, dtype: str) -> bytes:
    """Return the 128 bytes for a tensor that is the job's `buffer_number`-th buffer."""
    item_bytes = dtype_size_bytes(dtype)
    extents = tuple(reversed(tensor_map.view))
    strides = tuple(item_bytes * prod(extents[:axis]) for axis in range(len(extents)))
    swizzle = 0 if tensor_map.swizzle == "none" else int(tensor_map.swizzle)
    base = _ARENA + (buffer_number << _SLOT_BITS) + _SLOT_LEAD
    head = struct.pack(
        "<QBBBB4x", base, len(extents), item_bytes, swizzle, int(tensor_map.fill == "nan")
    )
    body = _five("I", extents) + b"\0" * 4 + _five("Q", strides)
    body += _five("I", tuple(reversed(tensor_map.box)))
    body += _five("I", tuple(reversed(tensor_map.element_strides)))
    return (head + body).ljust(128, b"\0")


def _five(code: str, values: tuple[int, ...]) -> bytes:
    return struct.pack(f"<5{code}", *[*values, *[1] * (5 - len(values))])
