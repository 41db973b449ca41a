"""Oracle of device_copy: the beginning of the input, and zeros behind its end."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected
from kopt.kernels.problem import Workload
from kopt.kernels.rounding import decode, round_to_bf16

_MAGNITUDES = Magnitudes(tiny=2.0**-18, huge=2.0**20)
_DRAWN = 1 << 20
"""Values that are drawn; a longer input repeats them, since a copy of 100 MB draws for seconds."""


def make_inputs(
    workload: Workload, rng: np.random.Generator, regime: str
) -> dict[str, npt.NDArray[Any]]:
    """Return `x` (N, 8R) in bfloat16."""
    rows, columns = workload.axes["N"], workload.axes["R8"]
    shape = (rows, min(columns, _DRAWN))
    amplitudes = draw_amplitudes(rng, shape, regime, _MAGNITUDES)
    drawn = round_to_bf16(draw_values(rng, shape, amplitudes))
    return {"x": np.tile(drawn, -(-columns // shape[1]))[:, :columns].copy()}


def expected(
    inputs: Arrays, scalars: Mapping[str, float | int], workload: Workload
) -> dict[str, Expected]:
    """Return `y` (N, 8W); the problem has no scalars."""
    del scalars
    x = inputs["x"]
    y = np.zeros((workload.axes["N"], workload.axes["W8"]), dtype=x.dtype)
    columns = min(x.shape[1], y.shape[1])
    y[:, :columns] = x[:, :columns]
    return {"y": Expected(decode(y), y, np.ones(y.shape, dtype=np.bool_), bit_exact=True)}
