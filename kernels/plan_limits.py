"""Limits of CUDA and of one GPU on the numbers of a launch, before any cubin is known.

Source: CUDA programming guide, "Compute Capabilities", technical specifications.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from kopt.config.gpu_specs import GpuSpec

from .dtypes import dtype_size_bytes
from .plan import Launch, Scratch, TensorMap

MAX_GRID = (2**31 - 1, 65_535, 65_535)
MAX_BLOCK = (1024, 1024, 64)
MAX_BLOCK_THREADS = 1024
MAX_CLUSTER_BLOCKS = 8
"""The portable limit; 16 needs an attribute that not every GPU of an architecture grants."""
MAX_SCRATCH_BYTES = 256 << 30
"""No GPU holds more. What one holds with the buffer sets of a timing, and what the machine of a
simulator holds, is found there, with the sizes."""

_HOPPER = (9, 0)


def launch_mistakes(launch: Launch, gpu: GpuSpec) -> Iterator[str]:
    """Yield every limit that `launch` breaks on `gpu`."""
    for name, dims, most in (("grid", launch.grid, MAX_GRID), ("block", launch.block, MAX_BLOCK)):
        for axis, value, limit in zip("xyz", dims, most, strict=True):
            if not 1 <= value <= limit:
                yield f"{name}.{axis} is {value}; 1 to {limit} is allowed"
    threads = prod(launch.block)
    if min(launch.block) > 0 and threads > MAX_BLOCK_THREADS:
        shown = " * ".join(str(value) for value in launch.block)
        yield f"block {shown} is {threads} threads; at most {MAX_BLOCK_THREADS}"
    limit = gpu.smem_per_block_optin_bytes
    if not 0 <= launch.dynamic_smem_bytes <= limit:
        smem = launch.dynamic_smem_bytes
        yield f"smem is {smem} bytes; 0 to {limit} are allowed on {gpu.name}"
    yield from _cluster_mistakes(launch)
    if gpu.compute_capability < _HOPPER:
        yield from _unsupported(launch, gpu)


def _cluster_mistakes(launch: Launch) -> Iterator[str]:
    if min(launch.cluster) < 1:
        yield f"cluster {launch.cluster} must be positive"
        return
    blocks = prod(launch.cluster)
    if blocks > MAX_CLUSTER_BLOCKS:
        yield (
            f"a cluster of {blocks} blocks; at most {MAX_CLUSTER_BLOCKS} are allowed: larger ones"
            " are not portable"
        )
    for axis, grid, cluster in zip("xyz", launch.grid, launch.cluster, strict=True):
        if grid % cluster:
            yield f"grid.{axis} = {grid} is no multiple of cluster.{axis} = {cluster}"


def _unsupported(launch: Launch, gpu: GpuSpec) -> Iterator[str]:
    major, minor = gpu.compute_capability
    used = {
        "clusters": prod(launch.cluster) > 1,
        "pdl": launch.pdl,
        "tensor maps": any(argument.kind == "tensor_map" for argument in launch.arguments),
    }
    for feature in (name for name, is_used in used.items() if is_used):
        yield f"{feature} need compute capability 9.0; {gpu.name} has {major}.{minor}"


def scratch_mistakes(buffers: Sequence[Scratch]) -> Iterator[str]:
    """Yield if the last of `buffers` has no positive shape or takes their sum over the limit."""
    if min(buffers[-1].shape) < 1:
        yield f"shape {buffers[-1].shape} must be positive"
        return
    sizes = [prod(buffer.shape) * dtype_size_bytes(buffer.dtype) for buffer in buffers]
    if sum(sizes) > MAX_SCRATCH_BYTES >= sum(sizes[:-1]):
        allowed = f"at most {MAX_SCRATCH_BYTES} are allowed"
        yield f"{sizes[-1]} bytes make {sum(sizes)} in all; {allowed}"


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


def tensor_map_mistakes(entry: TensorMap, buffer: MappedBuffer) -> Iterator[str]:
    """Yield every demand of the driver that `entry` breaks."""
    mistakes = list(_shape_mistakes(entry, buffer))
    yield from mistakes or _mode_mistakes(entry, buffer)


def _shape_mistakes(entry: TensorMap, buffer: MappedBuffer) -> Iterator[str]:
    rank = len(entry.view)
    if not 1 <= rank <= MAX_RANK:
        yield f"the view has {rank} axes; 1 to {MAX_RANK} are allowed"
        return
    for name, values, most in (
        ("view", entry.view, MAX_VIEW),
        ("box", entry.box, MAX_BOX),
        ("element_strides", entry.element_strides, MAX_ELEMENT_STRIDE),
    ):
        if len(values) != rank:
            yield f"{name} has {len(values)} axes, the view {rank}"
        for value in values:
            if not 1 <= value <= most:
                yield f"{name} holds {value}; 1 to {most} is allowed"
    if prod(entry.view) > prod(buffer.shape):
        elements = f"{prod(entry.view)} elements, {entry.tensor!r} only {prod(buffer.shape)}"
        yield f"the view has {elements}"


def _mode_mistakes(entry: TensorMap, buffer: MappedBuffer) -> Iterator[str]:
    unit = 32 if entry.interleave == "32" else 16
    size = dtype_size_bytes(buffer.dtype)
    for axis in range(1, len(entry.view)):
        stride = prod(entry.view[axis:]) * size
        if stride % unit or stride >= MAX_STRIDE_BYTES:
            needed = f"a multiple of {unit} below 2^40 is needed"
            yield f"the stride of view axis {axis - 1} is {stride} bytes; {needed}"
    inner = f"the innermost box axis has {entry.box[-1] * size} bytes"
    if entry.interleave == "none" and entry.box[-1] * size % 16:
        yield f"{inner}; a multiple of 16 is needed"
    swizzle = int(entry.swizzle) if entry.swizzle != "none" else MAX_STRIDE_BYTES
    if entry.interleave == "none" and entry.box[-1] * size > swizzle:
        yield f"{inner}, over the swizzle of {swizzle}"
    if entry.interleave != "none" and len(entry.view) < 3:
        yield f"interleave {entry.interleave} needs at least 3 axes"
    if entry.interleave == "32" and entry.swizzle != "32":
        yield "interleave 32 needs swizzle 32"
    if entry.fill == "nan" and buffer.dtype not in _FLOATS:
        yield f"fill nan needs a floating-point dtype, not {buffer.dtype}"
