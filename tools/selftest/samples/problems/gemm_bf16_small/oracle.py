"""Oracle of gemm_bf16_small: products of bfloat16 values, summed exactly and rounded once."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected, Inputs
from kopt.kernels.problem import Workload
from kopt.kernels.rounding import decode, round_to_bf16

_SUM_ERROR = 2.0**-18  # of K / 8 partial sums that a tensor core cuts off at 2^-23 of the largest


def make_inputs(workload: Workload, rng: np.random.Generator, regime: str) -> Inputs:
    """Return rows, and a weight near 0."""
    m, n, k = (workload.axes[name] for name in "MNK")
    amplitudes = draw_amplitudes(rng, (m, k), regime, Magnitudes(tiny=2.0**-20, huge=2.0**20))
    return {
        "x": round_to_bf16(draw_values(rng, (m, k), amplitudes)),
        "weight": round_to_bf16(rng.normal(0.0, k**-0.5, (n, k))),
    }


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return the product; float32 sums leave an error where terms cancel."""
    del scalars
    x, weight = decode(inputs["x"]), decode(inputs["weight"])
    exact: npt.NDArray[np.float64] = x @ weight.T
    slack = _SUM_ERROR * (np.abs(x) @ np.abs(weight).T)
    every = np.ones(exact.shape, dtype=np.bool_)
    rounded = round_to_bf16(exact)
    return {"out": Expected(exact, rounded, every, slack=slack, one_rounding=True)}
