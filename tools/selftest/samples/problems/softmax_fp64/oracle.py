"""Oracle of softmax_fp64: in float64, as the kernels."""

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected, Inputs
from kopt.kernels.problem import Workload


def make_inputs(workload: Workload, rng: np.random.Generator, regime: str) -> Inputs:
    """Return logits of float64 that are no float32."""
    shape = (workload.axes["R"], workload.axes["C"])
    amplitudes = draw_amplitudes(rng, shape, regime, Magnitudes(tiny=2.0**-10, huge=2.0**6))
    values = draw_values(rng, shape, amplitudes).astype(np.float64)
    return {"x": np.clip(values, -300, 300) * (1 / 3)}


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return the softmax."""
    del scalars
    logits = inputs["x"].astype(np.float64)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    exact: npt.NDArray[np.float64] = powers / powers.sum(axis=1, keepdims=True)
    return {"out": Expected(exact, exact, np.ones(exact.shape, dtype=np.bool_))}
