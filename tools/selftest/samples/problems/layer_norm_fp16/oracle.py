"""Oracle of layer_norm_fp16: values within the range of float16."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected, Inputs
from kopt.kernels.problem import Workload
from kopt.kernels.rounding import decode, round_to_fp16

_MOST = 2048.0  # a value and its square in float32, a mean of them in float16


def make_inputs(workload: Workload, rng: np.random.Generator, regime: str) -> Inputs:
    """Return rows, and gamma and beta near 1 and 0."""
    shape = (workload.axes["R"], workload.axes["C"])
    amplitudes = draw_amplitudes(rng, shape, regime, Magnitudes(tiny=2.0**-10, huge=2.0**6))
    values = np.clip(draw_values(rng, shape, amplitudes), -_MOST, _MOST)
    return {
        "x": round_to_fp16(values),
        "gamma": round_to_fp16(rng.uniform(0.5, 1.5, shape[1])),
        "beta": round_to_fp16(rng.uniform(-0.5, 0.5, shape[1])),
    }


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return the normed rows; float32 leaves an error where terms cancel."""
    x, gamma, beta = (decode(inputs[name]) for name in ("x", "gamma", "beta"))
    mean = x.mean(axis=1, keepdims=True)
    rstd = 1 / np.sqrt(np.square(x - mean).mean(axis=1, keepdims=True) + float(scalars["eps"]))
    exact: npt.NDArray[np.float64] = (x - mean) * rstd * gamma + beta
    terms = (np.abs(x) + np.abs(x).max(axis=1, keepdims=True)) * rstd * np.abs(gamma)
    slack = 2.0**-20 * (terms + np.abs(beta))
    every = np.ones(exact.shape, dtype=np.bool_)
    return {"out": Expected(exact, round_to_fp16(exact), every, slack=slack)}
