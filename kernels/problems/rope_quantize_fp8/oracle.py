"""Oracle of rope_quantize_fp8: rotation and scaling in fp64, one rounding into e4m3."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected
from kopt.kernels.problem import Workload
from kopt.kernels.rounding import decode, round_to_e4m3
from kopt.kernels.row_chunks import for_row_chunks

# e4m3 reaches from 2^-9 to 448: both amplitudes make some values leave it and some stay.
_MAGNITUDES = Magnitudes(tiny=2.0**-8, huge=2.0**8)
_ROPE_BASE = 10_000.0
_LAST_FIRST_POSITION = 1 << 17
_FP32_SLACK = 2.0**-20


def make_inputs(
    workload: Workload, rng: np.random.Generator, regime: str
) -> dict[str, npt.NDArray[Any]]:
    """Return the four bf16 tensors, `cos_sin_cache` (P, R) in float32 and `pos_ids` (N,) in int32.

    The cache is a window of a long table; `pos_ids` is a permutation of its rows, so that each row
    is needed once.
    """
    axes = workload.axes
    tokens, heads, rope_columns, nope_columns = (axes[name] for name in ("N", "H", "R", "C"))
    shapes = {
        "q_rope": (tokens, heads, rope_columns),
        "k_rope": (tokens, rope_columns),
        "q_nope": (tokens, heads, nope_columns),
        "k_nope": (tokens, nope_columns),
    }
    inputs = {name: _draw(rng, shape, regime) for name, shape in shapes.items()}
    inputs["cos_sin_cache"] = _cos_sin_window(rng, axes["P"], rope_columns)
    inputs["pos_ids"] = rng.permutation(axes["P"])[:tokens].astype(np.int32)
    return inputs


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return the four outputs; each has the shape of its input."""
    angles = decode(inputs["cos_sin_cache"])[inputs["pos_ids"]]
    scale_q = float(np.float32(scalars["quant_scale_q"]))
    scale_kv = float(np.float32(scalars["quant_scale_kv"]))
    return {
        "q_rope_out": _rotated(inputs["q_rope"], angles[:, None, :], scale_q),
        "k_rope_out": _rotated(inputs["k_rope"], angles, scale_kv),
        "q_nope_out": _scaled(inputs["q_nope"], scale_q),
        "k_nope_out": _scaled(inputs["k_nope"], scale_kv),
    }


def _draw(rng: np.random.Generator, shape: tuple[int, ...], regime: str) -> npt.NDArray[Any]:
    rows = (int(np.prod(shape[:-1])), shape[-1])
    amplitudes = draw_amplitudes(rng, rows, regime, _MAGNITUDES)
    return draw_values(rng, rows, amplitudes).astype(numpy_dtype("bfloat16")).reshape(shape)


def _cos_sin_window(
    rng: np.random.Generator, positions: int, rope_columns: int
) -> npt.NDArray[np.float32]:
    """Return cosines (first half of the columns) and sines of consecutive positions.

    Source:
        Su et al., "RoFormer", arXiv:2104.09864, section 3.2.2: frequency i is base^(-2i / R).
    """
    position = rng.integers(0, _LAST_FIRST_POSITION) + np.arange(positions, dtype=np.float64)
    frequency = _ROPE_BASE ** (-np.arange(0, rope_columns, 2, dtype=np.float64) / rope_columns)
    angle = position[:, None] * frequency[None, :]
    return np.concatenate([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


def _rotated(x: npt.NDArray[Any], angles: npt.NDArray[np.float64], scale: float) -> Expected:
    """Return the e4m3 codes of the rotated and scaled `x`.

    Column i is paired with column R/2 + i (the NeoX layout, not even with odd columns).

    Args:
        x: (..., R) bfloat16.
        angles: (..., R) cosines then sines, broadcastable to `x`.
        scale: Multiplies after the rotation.
    """
    half = x.shape[-1] // 2
    wide = decode(x)
    first, second = wide[..., :half], wide[..., half:]
    cosine, sine = angles[..., :half], angles[..., half:]
    exact = np.concatenate(
        [first * cosine - second * sine, second * cosine + first * sine], axis=-1
    )
    exact *= scale
    half_slack = (np.abs(first) + np.abs(second)) * (_FP32_SLACK * scale)
    return Expected(
        exact,
        round_to_e4m3(exact),
        np.ones(x.shape, dtype=np.bool_),
        slack=np.concatenate([half_slack, half_slack], axis=-1),
    )


def _scaled(x: npt.NDArray[Any], scale: float) -> Expected:
    """Return the e4m3 codes of `x` times `scale`."""
    exact = np.empty(x.shape, dtype=np.float64)

    def multiply(chunk: slice) -> None:
        exact[chunk] = decode(x[chunk]) * scale

    for_row_chunks(x.shape[0], x[0].size, multiply)
    return Expected(exact, round_to_e4m3(exact), np.ones(x.shape, dtype=np.bool_))
