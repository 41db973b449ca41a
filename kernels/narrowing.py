"""Exact values as float32: half the memory, and its 2^-24 is far below what any gate allows."""

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
import numpy.typing as npt

_SAFE_RANGE = (np.float32(2.0**-100), np.float32(2.0**100))
_is_enough: ContextVar[bool] = ContextVar("float32 is enough", default=False)


@contextmanager
def float32_is_enough() -> Generator[None]:
    """Let oracles that this thread calls give `exact` as float32 where its range suffices.

    Float64 of a large output is made for nothing then: the gates read it as float32 anyway.
    """
    token = _is_enough.set(True)
    try:
        yield
    finally:
        _is_enough.reset(token)


def kept_dtype() -> npt.DTypeLike:
    """Return what exact values are to be kept as: float64 unless float32 is enough."""
    return np.float32 if _is_enough.get() else np.float64


def keep_exact(kept: npt.NDArray[np.floating[Any]], exact: npt.NDArray[np.floating[Any]]) -> bool:
    """Put `exact` into `kept`; return False where `kept` is float32 and its safe range is left.

    Zeros, infinities and NaN are within it. Some 2^16 elements at once stay in a core's cache.
    """
    with np.errstate(over="ignore", under="ignore"):
        kept[...] = exact
    if kept.dtype != np.float32:
        return True
    magnitude = np.abs(kept)
    low, high = _SAFE_RANGE
    if magnitude.min(initial=high) > low and magnitude.max(initial=low) < high:
        return True
    outside = (magnitude <= low) | (magnitude >= high)
    outside &= exact != 0
    return not np.isfinite(exact[outside]).any()
