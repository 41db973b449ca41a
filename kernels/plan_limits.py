"""Limits of CUDA and of one GPU on the numbers of a launch, before any cubin is known.

Source: CUDA programming guide, "Compute Capabilities", technical specifications.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from kopt.config.gpu_specs import GpuSpec

from .dtypes import dtype_size_bytes
from .plan import Launch, Scratch, TensorMap
from .record import Findings

MAX_GRID = (2**31 - 1, 65_535, 65_535)
MAX_BLOCK = (1024, 1024, 64)
MAX_BLOCK_THREADS = 1024
MAX_CLUSTER_BLOCKS = 8
"""The portable limit; 16 needs an attribute that not every GPU of an architecture grants."""
MAX_SCRATCH_BYTES = 256 * 1024 * 1024
"""Per buffer set: several sets are resident at once while a candidate is timed."""

_HOPPER = (9, 0)


def check_launch(launch: Launch, what: str, gpu: GpuSpec, findings: Findings) -> None:
    """Report every limit that `launch` breaks on `gpu`; `what` names the launch in messages."""
    _check_dims("grid", launch.grid, MAX_GRID, f"{what}: ", (launch.line, findings))
    _check_dims("block", launch.block, MAX_BLOCK, f"{what}: ", (launch.line, findings))
    threads = prod(launch.block)
    if min(launch.block) > 0 and threads > MAX_BLOCK_THREADS:
        shown = " * ".join(str(value) for value in launch.block)
        message = f"{what}: block {shown} is {threads} threads; at most {MAX_BLOCK_THREADS}"
        findings.error(message, launch.line)
    limit = gpu.smem_per_block_optin_bytes
    smem = launch.dynamic_smem_bytes
    if not 0 <= smem <= limit:
        message = f"{what}: smem is {smem} bytes; 0 to {limit} are allowed on {gpu.name}"
        findings.error(message, launch.line)
    _check_cluster(launch, what, findings)
    if gpu.compute_capability < _HOPPER:
        _check_old_gpu(launch, what, gpu, findings)


def _check_dims(
    name: str,
    dims: tuple[int, int, int],
    most: tuple[int, int, int],
    what: str,
    report: tuple[int | None, Findings],
) -> None:
    line, findings = report
    for axis, value, limit in zip("xyz", dims, most, strict=True):
        if not 1 <= value <= limit:
            findings.error(f"{what}{name}.{axis} is {value}; 1 to {limit} is allowed", line)


def _check_cluster(launch: Launch, what: str, findings: Findings) -> None:
    if min(launch.cluster) < 1:
        findings.error(f"{what}: cluster {launch.cluster} must be positive", launch.line)
        return
    blocks = prod(launch.cluster)
    if blocks > MAX_CLUSTER_BLOCKS:
        message = f"{what}: a cluster of {blocks} blocks; at most {MAX_CLUSTER_BLOCKS} are portable"
        findings.error(message, launch.line, "sizes up to 16 are non-portable and not supported")
    for axis, grid, cluster in zip("xyz", launch.grid, launch.cluster, strict=True):
        if grid % cluster:
            message = f"{what}: grid.{axis} = {grid} is no multiple of cluster.{axis} = {cluster}"
            findings.error(message, launch.line)


def _check_old_gpu(launch: Launch, what: str, gpu: GpuSpec, findings: Findings) -> None:
    major, minor = gpu.compute_capability
    used = {
        "clusters": prod(launch.cluster) > 1,
        "pdl": launch.pdl,
        "tensor maps": any(argument.kind == "tensor_map" for argument in launch.arguments),
    }
    for feature in (name for name, is_used in used.items() if is_used):
        message = f"{what}: {feature} need compute capability 9.0; {gpu.name} has {major}.{minor}"
        findings.error(message, launch.line)


def check_scratch(buffers: Sequence[Scratch], line: int | None, findings: Findings) -> None:
    """Report if the last of `buffers` has no positive shape or takes their sum over the limit."""
    last = buffers[-1]
    if min(last.shape) < 1:
        findings.error(f"scratch {last.name}: shape {last.shape} must be positive", line)
        return
    sizes = [prod(buffer.shape) * dtype_size_bytes(buffer.dtype) for buffer in buffers]
    if sum(sizes) > MAX_SCRATCH_BYTES >= sum(sizes[:-1]):
        message = f"scratch {last.name}: {sizes[-1]} bytes make {sum(sizes)} in all"
        findings.error(f"{message}; at most {MAX_SCRATCH_BYTES} are allowed", line)


MAX_RANK = 5
MAX_BOX = 256
MAX_ELEMENT_STRIDE = 8
MAX_VIEW = 2**32
MAX_STRIDE_BYTES = 2**40

_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})


@dataclass(frozen=True)
class MappedBuffer:
    """The tensor or scratch buffer below a map."""

    dtype: str
    shape: tuple[int, ...]
    """In elements, padding included."""


def check_tensor_map(
    entry: TensorMap, buffer: MappedBuffer, line: int | None, findings: Findings
) -> None:
    """Report every demand that `entry` breaks."""
    mistakes = _shape_mistakes(entry, buffer)
    if not mistakes:
        mistakes = [*_stride_mistakes(entry, buffer), *_mode_mistakes(entry, buffer)]
    for mistake in mistakes:
        findings.error(f"tensor map {entry.name}: {mistake}", line)


def _shape_mistakes(entry: TensorMap, buffer: MappedBuffer) -> list[str]:
    rank = len(entry.view)
    mistakes: list[str] = []
    if not 1 <= rank <= MAX_RANK:
        return [f"the view has {rank} axes; 1 to {MAX_RANK} are allowed"]
    for name, values, most in (
        ("view", entry.view, MAX_VIEW),
        ("box", entry.box, MAX_BOX),
        ("element_strides", entry.element_strides, MAX_ELEMENT_STRIDE),
    ):
        if len(values) != rank:
            mistakes.append(f"{name} has {len(values)} axes, the view {rank}")
        mistakes.extend(
            f"{name} holds {value}; 1 to {most} is allowed"
            for value in values
            if not 1 <= value <= most
        )
    if not mistakes and prod(entry.view) > prod(buffer.shape):
        sizes = f"{prod(entry.view)} elements, {entry.tensor!r} only {prod(buffer.shape)}"
        mistakes.append(f"the view has {sizes}")
    return mistakes


def _stride_mistakes(entry: TensorMap, buffer: MappedBuffer) -> list[str]:
    unit = 32 if entry.interleave == "32" else 16
    size = dtype_size_bytes(buffer.dtype)
    mistakes: list[str] = []
    for axis in range(1, len(entry.view)):
        stride = prod(entry.view[axis:]) * size
        if stride % unit or stride >= MAX_STRIDE_BYTES:
            mistakes.append(
                f"the stride of view axis {axis - 1} is {stride} bytes;"
                f" a multiple of {unit} below 2^40 is needed"
            )
    return mistakes


def _mode_mistakes(entry: TensorMap, buffer: MappedBuffer) -> list[str]:
    inner_bytes = entry.box[-1] * dtype_size_bytes(buffer.dtype)
    mistakes: list[str] = []
    if entry.interleave == "none" and inner_bytes % 16:
        mistakes.append(
            f"the innermost box axis has {inner_bytes} bytes; a multiple of 16 is needed"
        )
    if entry.interleave == "none" and entry.swizzle != "none" and inner_bytes > int(entry.swizzle):
        mistakes.append(
            f"the innermost box axis has {inner_bytes} bytes, over the swizzle of {entry.swizzle}"
        )
    if entry.interleave != "none" and len(entry.view) < 3:
        mistakes.append(f"interleave {entry.interleave} needs at least 3 axes")
    if entry.interleave == "32" and entry.swizzle != "32":
        mistakes.append("interleave 32 needs swizzle 32")
    if entry.fill == "nan" and buffer.dtype not in _FLOATS:
        mistakes.append(f"fill nan needs a floating-point dtype, not {buffer.dtype}")
    return mistakes
