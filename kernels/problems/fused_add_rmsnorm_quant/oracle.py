"""Oracle of fused_add_rmsnorm_quant: fp64 up to the one rounding into e4m3."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.oracle import Arrays, Expected
from kopt.kernels.problem import Workload
from kopt.kernels.rmsnorm import draw_add_rmsnorm_inputs, exact_add_rmsnorm, expected_residual
from kopt.kernels.rounding import round_to_e4m3

_SCALE = 0.01  # normed values of about 4.5 reach the largest e4m3 number, 448; the rest saturate


def make_inputs(
    workload: Workload, rng: np.random.Generator, regime: str
) -> dict[str, npt.NDArray[Any]]:
    """Return `input`, `residual` (B, H), `weight` (H,) in bfloat16 and `scale` () in float32.

    The scale does not follow the data, as a calibrated one in production does not: outliers
    saturate, tiny values land among e4m3's subnormals.
    """
    shape = (workload.axes["B"], workload.axes["H"])
    inputs = draw_add_rmsnorm_inputs(rng, shape, regime)
    inputs["scale"] = np.array(_SCALE * rng.uniform(0.75, 1.5), dtype=np.float32)
    return inputs


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return the codes `out` and the updated `residual`."""
    x, residual = inputs["input"], inputs["residual"]
    scaled = exact_add_rmsnorm(x, residual, inputs["weight"], scalars["eps"])
    scaled /= inputs["scale"].item()
    return {
        "out": Expected(scaled, round_to_e4m3(scaled), np.ones(x.shape, dtype=np.bool_)),
        "residual": expected_residual(x, residual),
    }
