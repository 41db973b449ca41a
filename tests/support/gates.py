"""The correctness gates as plain measures, for honest fp32 emulations of an operator."""

from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.oracle import Expected
from kopt.kernels.rounding import E4M3_MAX, decode, round_to_e4m3


def l2_ratio(got: npt.NDArray[Any], expected: Expected) -> float:
    """Return the L2 error of `got` over that of correct rounding, both against the exact value."""
    error = np.linalg.norm(decode(got) - expected.exact)
    return float(error / np.linalg.norm(decode(expected.rounded) - expected.exact))


def worst_row_l2_ratio(got: npt.NDArray[Any], expected: Expected) -> float:
    """Return the largest `l2_ratio` of a single row; rows without any error do not count."""
    error = np.linalg.norm(decode(got) - expected.exact, axis=-1)
    least = np.linalg.norm(decode(expected.rounded) - expected.exact, axis=-1)
    assert not error[least == 0].any()
    return float(np.max(error[least > 0] / least[least > 0]))


def worst_bf16_ulps(got: npt.NDArray[Any], expected: Expected) -> float:
    """Return the largest distance to the exact value in bf16 ulps of it, beyond the slack."""
    exact = expected.exact
    _, exponent = np.frexp(np.abs(exact))
    slack = 0.0 if expected.slack is None else expected.slack
    excess = np.maximum(np.abs(decode(got) - exact) - slack, 0.0)
    return float(np.max(excess / np.ldexp(1.0, np.maximum(exponent, -125) - 8)))


def refused_codes(
    got: npt.NDArray[Any], scaled: npt.NDArray[np.floating[Any]], window: float
) -> npt.NDArray[np.bool_]:
    """Return which e4m3 codes are neither the rounded value nor within `window` of a midpoint.

    Args:
        got: The codes.
        scaled: The exact values, already divided by the candidate's own scale.
        window: Relative distance from a midpoint within which either neighbor is right.
    """
    down, up = (round_to_e4m3(scaled * factor) for factor in (1 - window, 1 + window))
    value = np.clip(decode(got), -E4M3_MAX, E4M3_MAX)
    low, high = np.minimum(decode(down), decode(up)), np.maximum(decode(down), decode(up))
    refused: npt.NDArray[np.bool_] = (value < low) | (value > high)
    return refused
