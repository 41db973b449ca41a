"""What cuTensorMapEncodeTiled demands of a tensor map, checked before any driver sees it.

Source: CUDA driver API, "Tensor Map Object Management", cuTensorMapEncodeTiled.
"""

from dataclasses import dataclass
from math import prod

from .dtypes import dtype_size_bytes
from .plan import TensorMap
from .yaml_fields import Findings

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
