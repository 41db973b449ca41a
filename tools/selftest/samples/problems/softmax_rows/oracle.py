"""Oracle of softmax_rows: logits of at most some tens, since exp loses digits of larger ones."""

from collections.abc import Mapping

import numpy as np

from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected, Inputs
from kopt.kernels.problem import Workload


def make_inputs(workload: Workload, rng: np.random.Generator, regime: str) -> Inputs:
    """Return logits within 60 of one another."""
    shape = (workload.axes["R"], workload.axes["C"])
    amplitudes = draw_amplitudes(rng, shape, regime, Magnitudes(tiny=2.0**-10, huge=2.0**6))
    return {"x": np.clip(draw_values(rng, shape, amplitudes), -30, 30)}


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return the softmax; far below the largest, what is left of a value is an absolute error."""
    del scalars
    logits = inputs["x"].astype(np.float64)
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    exact = powers / powers.sum(axis=1, keepdims=True)
    slack = np.full(exact.shape, 2.0**-60)
    every = np.ones(exact.shape, dtype=np.bool_)
    return {"out": Expected(exact, exact.astype(np.float32), every, slack=slack)}
