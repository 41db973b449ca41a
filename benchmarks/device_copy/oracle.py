"""Oracle of device_copy: the input itself."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected
from kopt.kernels.problem import Workload
from kopt.kernels.rounding import decode, round_to_bf16

_MAGNITUDES = Magnitudes(tiny=2.0**-18, huge=2.0**20)


def make_inputs(
    workload: Workload, rng: np.random.Generator, regime: str
) -> dict[str, npt.NDArray[Any]]:
    """Return `x` (N, W) in bfloat16."""
    shape = (workload.axes["N"], workload.axes["W"])
    amplitudes = draw_amplitudes(rng, shape, regime, _MAGNITUDES)
    return {"x": round_to_bf16(draw_values(rng, shape, amplitudes))}


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return `y`; the problem has no scalars."""
    del scalars
    x = inputs["x"]
    return {"y": Expected(decode(x), x, np.ones(x.shape, dtype=np.bool_), bit_exact=True)}
