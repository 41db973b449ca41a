"""Inputs of an imported problem, drawn as its graph says: regimes act on what the user passes.

Parameters keep their distribution in every regime: a network whose weights are all 1,000 times
larger is another network. Constants that are part of the function come from .npy files.
"""

from dataclasses import dataclass
from math import prod, sqrt
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.config.errors import ToolError
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_uniform, draw_values
from kopt.kernels.problem import Workload
from kopt.kernels.rounding import round_to_bf16, round_to_fp16

from .graph import AxisSize, Drawing, GraphInput, Size

Array = npt.NDArray[Any]

LARGE_ELEMENTS = 1 << 22
"""Elements from which on a tensor is drawn by several threads."""


@dataclass(frozen=True)
class InputDraw:
    """What decides the inputs of one case."""

    folder: Path
    """Holds the .npy files of constants."""
    workload: Workload
    rng: np.random.Generator
    regime: str
    magnitudes: Magnitudes
    sample: int | None = None
    """Which of the recorded values is taken, of all inputs that have some."""


def draw_input(given: GraphInput, draw: InputDraw) -> Array:
    """Return one tensor of the problem for a case.

    Raises:
        ToolError: The file of a constant is missing or has another shape.
    """
    shape = sizes(given.type.shape, draw.workload)
    drawing = given.drawing
    if drawing.kind == "stored":
        return stored(given, draw.folder, draw.workload)
    if draw.sample is not None and drawing.samples:
        recorded = _array_in(draw.folder / sample_name(given.name, draw.sample))
        if recorded.shape == shape:
            return np.asarray(recorded.astype(numpy_dtype(given.type.dtype)))
    if drawing.kind == "bools":
        return draw.rng.random(shape) < drawing.high
    if drawing.kind == "integers":
        high = drawing.high if drawing.below is None else size(drawing.below, draw.workload) - 1
        whole = draw.rng.integers(int(drawing.low), int(high), shape, endpoint=True)
        return np.asarray(whole).astype(numpy_dtype(given.type.dtype))
    is_large = prod(shape) > LARGE_ELEMENTS and given.type.dtype != "float64"
    values = (_large_floats if is_large else _floats)(drawing, shape, draw.rng)
    if given.kind == "input":
        flat = (prod(shape[:-1]), shape[-1] if shape else 1)
        amplitudes = draw_amplitudes(draw.rng, flat, draw.regime, draw.magnitudes)
        if amplitudes.size > 1 or amplitudes.item() != 1.0:
            values = values * np.broadcast_to(amplitudes, flat).reshape(shape)
    return rounded_to(values, given.type.dtype)


def _floats(drawing: Drawing, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    factor = _factor(drawing, shape)
    if drawing.kind == "uniform":
        return np.asarray(rng.uniform(drawing.low, drawing.high, shape) * factor)
    return np.asarray((drawing.mean + drawing.deviation * rng.standard_normal(shape)) * factor)


def _factor(drawing: Drawing, shape: tuple[int, ...]) -> float:
    """Return what values are multiplied by: weights shrink as what they add up grows."""
    return 1.0 / sqrt(max(prod(shape[1:]), 1)) if drawing.per_fan_in else 1.0


def _large_floats(drawing: Drawing, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Return what `_floats` does, of another stream of `rng` and in float32, by several threads."""
    factor = _factor(drawing, shape)
    flat = (prod(shape[:-1]), shape[-1])
    if drawing.kind == "uniform":
        return draw_uniform(rng, flat, drawing.low * factor, drawing.high * factor).reshape(shape)
    values = draw_values(rng, flat, np.full((1, 1), drawing.deviation * factor, np.float32))
    if drawing.mean:
        values += np.float32(drawing.mean * factor)
    return values.reshape(shape)


def rounded_to(values: Array, dtype: str) -> Array:
    """Return float64 `values` rounded once to `dtype`."""
    if dtype == "bfloat16":
        return round_to_bf16(values)
    if dtype == "float16":
        return round_to_fp16(np.clip(values, -65504.0, 65504.0))
    return np.asarray(values).astype(numpy_dtype(dtype))


def stored_name(name: str, workload: str = "") -> str:
    """Return the name of the file of a constant, of one workload if they differ."""
    return f"{name}.{workload}.npy" if workload else f"{name}.npy"


def stored(given: GraphInput, folder: Path, workload: Workload) -> Array:
    """Return the constant `given` at `workload`.

    Raises:
        ToolError: No file has it, or one cannot be read.
    """
    _, kept = _stored(given, folder, workload)
    return np.asarray(kept.astype(numpy_dtype(given.type.dtype)))


def stored_file(given: GraphInput, folder: Path, workload: Workload) -> Path:
    """Return the file of the constant `given` at `workload`.

    Raises:
        ToolError: There is none, or one cannot be read.
    """
    return _stored(given, folder, workload)[0]


def _stored(given: GraphInput, folder: Path, workload: Workload) -> tuple[Path, Array]:
    """Return of the files of a constant the one with the right shape, and its values."""
    shape = sizes(given.type.shape, workload)
    for path in (folder / stored_name(given.name), *sorted(folder.glob(f"{given.name}.*.npy"))):
        if not path.is_file():
            continue
        kept = _array_in(path)
        if kept.shape == shape:
            return path, np.asarray(kept)
    raise ToolError(
        f"{folder} has no constant {given.name} of shape {shape}: it is part of the function and"
        " known at the shapes that were imported only"
    )


def sample_name(name: str, number: int) -> str:
    """Return the name of the file of a recorded value of an input."""
    return f"{name}.sample{number}.npy"


def _array_in(path: Path) -> Array:
    try:
        return np.asarray(np.load(path, allow_pickle=False))
    except (OSError, ValueError) as error:
        raise ToolError(f"cannot read the values in {path}: {error}") from error


def size(extent: Size, workload: Workload) -> int:
    """Return the value of one size at `workload`."""
    return workload.axes[extent.axis] if isinstance(extent, AxisSize) else extent


def sizes(shape: tuple[Size, ...], workload: Workload) -> tuple[int, ...]:
    """Return a shape at `workload`."""
    return tuple(size(one, workload) for one in shape)
