"""Oracle of rotate_pairs: angles are float32 products, their sines and cosines exact."""

from collections.abc import Mapping

import numpy as np

from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected, Inputs
from kopt.kernels.problem import Workload


def make_inputs(workload: Workload, rng: np.random.Generator, regime: str) -> Inputs:
    """Return rows at positions up to 100,000."""
    shape = (workload.axes["R"], workload.axes["C"])
    amplitudes = draw_amplitudes(rng, shape, regime, Magnitudes(tiny=2.0**-10, huge=2.0**6))
    half = np.arange(shape[1] // 2) / (shape[1] // 2)
    return {
        "x": draw_values(rng, shape, amplitudes),
        "position": rng.integers(0, 100_000, shape[0], dtype=np.int32),
        "frequency": (10000.0**-half).astype(np.float32),
    }


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return the turned pairs; where both terms cancel float32 leaves an absolute error."""
    del scalars
    angle32 = inputs["position"].astype(np.float32)[:, None] * inputs["frequency"]
    angle = angle32.astype(np.float64)
    first, second = (part.astype(np.float64) for part in np.split(inputs["x"], 2, axis=1))
    cos, sin = np.cos(angle), np.sin(angle)
    exact = np.concatenate([first * cos - second * sin, first * sin + second * cos], axis=1)
    slack = np.tile(2.0**-20 * (np.abs(first) + np.abs(second)), 2)
    every = np.ones(exact.shape, dtype=np.bool_)
    return {"out": Expected(exact, exact.astype(np.float32), every, slack=slack)}
