"""Oracle of transpose_tiles: the same values in other places."""

from collections.abc import Mapping

import numpy as np

from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected, Inputs
from kopt.kernels.problem import Workload


def make_inputs(workload: Workload, rng: np.random.Generator, regime: str) -> Inputs:
    """Return matrices."""
    b, m, n = (workload.axes[name] for name in "BMN")
    amplitudes = draw_amplitudes(rng, (b, m * n), regime, Magnitudes(tiny=2.0**-20, huge=2.0**20))
    return {"x": draw_values(rng, (b, m * n), amplitudes).reshape(b, m, n)}


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return the transposed matrices."""
    del scalars
    turned = np.ascontiguousarray(inputs["x"].transpose(0, 2, 1))
    every = np.ones(turned.shape, dtype=np.bool_)
    return {"out": Expected(turned.astype(np.float64), turned, every, bit_exact=True)}
