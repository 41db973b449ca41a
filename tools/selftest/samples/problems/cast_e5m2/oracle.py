"""Oracle of cast_e5m2: saturating, as the hardware's conversion."""

from collections.abc import Mapping

import numpy as np

from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected, Inputs
from kopt.kernels.problem import Workload
from kopt.kernels.rounding import round_to_e5m2


def make_inputs(workload: Workload, rng: np.random.Generator, regime: str) -> Inputs:
    """Return values, some of them beyond the largest number of the format."""
    shape = (workload.axes["R"], workload.axes["C"])
    amplitudes = draw_amplitudes(rng, shape, regime, Magnitudes(tiny=2.0**-10, huge=2.0**6))
    return {"x": draw_values(rng, shape, amplitudes)}


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return the scaled values."""
    exact = inputs["x"].astype(np.float64) * float(scalars["scale"])
    every = np.ones(exact.shape, dtype=np.bool_)
    return {"out": Expected(exact, round_to_e5m2(exact), every)}
