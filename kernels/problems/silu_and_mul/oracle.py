"""Oracle of silu_and_mul: fp64 from the stored bf16 inputs, one rounding at the end."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected
from kopt.kernels.problem import Workload
from kopt.kernels.rounding import decode, round_to_bf16
from kopt.kernels.row_chunks import for_row_chunks

_MAGNITUDES = Magnitudes(tiny=2.0**-18, huge=2.0**20)
# Below -24 silu falls under 2^-30, and approximate division breaks where exp(-gate) nears 2^126;
# from -256 on exp(-gate) is infinite in fp32 for sure, and silu 0.
_LAST_FINE_GATE = -24.0
_FIRST_VANISHING_GATE = -256.0


def make_inputs(
    workload: Workload, rng: np.random.Generator, regime: str
) -> dict[str, npt.NDArray[Any]]:
    """Return `input` (B, 2H) in bfloat16: the gates, then the values that they multiply.

    No gate lies between -256 and -24, where results leave 2^-50: those become -24. Huge gates stay,
    so that an exponential that overflows must still give 0 or the gate itself, never NaN.
    """
    columns = workload.axes["H"]
    shape = (workload.axes["B"], columns)
    amplitudes = draw_amplitudes(rng, shape, regime, _MAGNITUDES)
    result = np.empty((shape[0], 2 * columns), dtype=numpy_dtype("bfloat16"))
    gate = draw_values(rng, shape, amplitudes)
    fades = (gate < _LAST_FINE_GATE) & (gate > _FIRST_VANISHING_GATE)
    gate[fades] = _LAST_FINE_GATE
    result[:, :columns] = gate
    result[:, columns:] = draw_values(rng, shape, amplitudes)
    return {"input": result}


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return `out`; the problem has no scalars."""
    del scalars
    rows, columns = inputs["input"].shape
    columns //= 2
    exact = np.empty((rows, columns), dtype=np.float64)

    def multiply(chunk: slice) -> None:
        wide = decode(inputs["input"][chunk])
        gate = wide[:, :columns]
        # exp(-|gate|) cannot overflow: sigmoid is 1 / (1 + e) for positive gates, e / (1 + e) else.
        decay = np.exp(-np.abs(gate))
        sigmoid = np.where(gate >= 0, 1.0, decay) / (1.0 + decay)
        exact[chunk] = gate * sigmoid * wide[:, columns:]

    for_row_chunks(rows, columns, multiply)
    return {"out": Expected(exact, round_to_bf16(exact), np.ones(exact.shape, dtype=np.bool_))}
