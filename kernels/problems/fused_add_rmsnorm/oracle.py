"""Oracle of fused_add_rmsnorm: fp64 from the stored bf16 inputs, one rounding at the end."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.oracle import Arrays, Expected
from kopt.kernels.problem import Workload
from kopt.kernels.rmsnorm import draw_add_rmsnorm_inputs, exact_add_rmsnorm, expected_residual
from kopt.kernels.rounding import round_to_bf16


def make_inputs(
    workload: Workload, rng: np.random.Generator, regime: str
) -> dict[str, npt.NDArray[Any]]:
    """Return `input` (B, H), `residual` (B, H) and `weight` (H,), all bfloat16."""
    return draw_add_rmsnorm_inputs(rng, (workload.axes["B"], workload.axes["H"]), regime)


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return the normed `input` and the updated `residual`, both in place."""
    x, residual = inputs["input"], inputs["residual"]
    normed = exact_add_rmsnorm(x, residual, inputs["weight"], scalars["eps"])
    return {
        "input": Expected(normed, round_to_bf16(normed), np.ones(x.shape, dtype=np.bool_)),
        "residual": expected_residual(x, residual),
    }
