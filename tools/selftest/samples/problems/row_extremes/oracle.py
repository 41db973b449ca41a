"""Oracle of row_extremes: no order of comparisons changes the result."""

from collections.abc import Mapping

import numpy as np

from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected, Inputs
from kopt.kernels.problem import Workload


def make_inputs(workload: Workload, rng: np.random.Generator, regime: str) -> Inputs:
    """Return values of either sign."""
    shape = (workload.axes["R"], workload.axes["C"])
    amplitudes = draw_amplitudes(rng, shape, regime, Magnitudes(tiny=2.0**-10, huge=2.0**6))
    return {"x": draw_values(rng, shape, amplitudes)}


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return value and place of the largest."""
    del scalars
    x = inputs["x"]
    largest, place = x.max(axis=1), x.argmax(axis=1)
    every = np.ones(largest.shape, dtype=np.bool_)
    return {
        "largest": Expected(largest.astype(np.float64), largest, every, bit_exact=True),
        "place": Expected(place.astype(np.float64), place.astype(np.int32), every),
    }
