"""How a graph's inputs are distributed, measured on what the user's own code makes several times.

A buffer that is the same in every call is a table and part of the function, and so are positions
that count up. One number throughout is a weight at its initial value, and drawn with a spread.
"""

from math import prod, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.tools.pytorch.graph import Drawing, GraphInput

SPREAD = 0.35
"""Half the width of what a constant weight is drawn from, in units of its value, or of 1 for 0."""
_FLAT = 2.2
"""Kurtosis below which values are taken for uniform (1.8) and not normal (3)."""
_FAN_IN_RANGE = (0.9, 1.1)


def measure(given: GraphInput, draws: list[npt.NDArray[Any]]) -> Drawing:
    """Return how an input is drawn.

    Args:
        given: Of the graph.
        draws: Its values in several calls of the user's code, as float64, integers or bools.
    """
    first = draws[0]
    values = np.concatenate([one.reshape(-1) for one in draws])
    is_same = all(
        np.array_equal(first, one, equal_nan=first.dtype.kind == "f") for one in draws[1:]
    )
    if first.dtype.kind == "b":
        share = float(values.mean()) if values.size else 0.5
        return Drawing(kind="stored") if is_same else Drawing(kind="bools", high=share)
    if first.dtype.kind in "iu":
        if is_same and (given.kind != "input" or _counts_up(first)):
            return Drawing(kind="stored")
        return Drawing(kind="integers", low=float(values.min()), high=float(values.max()))
    if given.kind == "constant" or not np.isfinite(values).all():
        return Drawing(kind="stored")
    if values.size and (values == values[0]).all():
        return _around(float(values[0]), given.kind)
    if is_same and given.kind == "buffer":
        return Drawing(kind="stored")
    return _spread_of(given, values)


def _counts_up(values: npt.NDArray[Any]) -> bool:
    steps = np.diff(values, axis=-1) if values.ndim else values
    return bool(steps.size) and bool((steps == 1).all())


def _around(value: float, kind: str) -> Drawing:
    half = SPREAD * (abs(value) or 1.0)
    is_weight = kind in ("parameter", "buffer")
    return Drawing(
        kind="uniform", low=value - half, high=value + half, mean=value, was_constant=is_weight
    )


def _spread_of(given: GraphInput, values: npt.NDArray[Any]) -> Drawing:
    mean, deviation = float(values.mean()), float(values.std())
    low, high = float(values.min()), float(values.max())
    apart = (values - mean) / (deviation or 1.0)
    is_flat = float(np.mean(apart**4)) < _FLAT
    shape = given.type.shape
    if given.kind == "parameter" and len(shape) > 1 and is_flat:
        fan_in = prod(one for one in shape[1:] if isinstance(one, int))
        bound = high * sqrt(fan_in)
        if abs(low + high) < 0.1 * high and _FAN_IN_RANGE[0] < bound < _FAN_IN_RANGE[1]:
            return Drawing(kind="uniform", low=-1.0, high=1.0, per_fan_in=True)
    if is_flat or low >= 0.0:  # what is nowhere negative stays so: probabilities, lengths
        return Drawing(kind="uniform", low=low, high=high)
    if abs(mean) < 4.0 * deviation / sqrt(values.size):  # what chance leaves of none
        mean = 0.0
    if abs(deviation - 1.0) < 4.0 / sqrt(2.0 * values.size):
        deviation = 1.0
    return Drawing(kind="normal", mean=mean, deviation=deviation)
