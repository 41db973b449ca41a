"""Oracle of fused_add_rmsnorm_fp8_block_quant: bf16 normed values, and fp8 codes in 1x128 blocks.

The block scale is that of the bf16-rounded values, amax / 448. The codes' exact value is the
unrounded one: whether a kernel quantizes the bf16 value, as FlashInfer does, or the fp32 value is
its own choice, and the two differ only next to a midpoint.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.oracle import Arrays, Expected, ScaledBy
from kopt.kernels.problem import Workload
from kopt.kernels.rmsnorm import draw_add_rmsnorm_inputs, exact_add_rmsnorm, expected_residual
from kopt.kernels.rounding import E4M3_MAX, decode, round_to_bf16, round_to_e4m3
from kopt.kernels.row_chunks import for_row_chunks

_BLOCK = 128
_LEAST_AMAX = float(np.float32(1e-4))


def make_inputs(
    workload: Workload, rng: np.random.Generator, regime: str
) -> dict[str, npt.NDArray[Any]]:
    """Return `input` (B, H), `residual` (B, H) and `weight` (H,), all bfloat16."""
    return draw_add_rmsnorm_inputs(rng, (workload.axes["B"], workload.axes["H"]), regime)


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return `out`, `block_scale`, `normed_out` and the updated `residual`."""
    x, residual = inputs["input"], inputs["residual"]
    normed = exact_add_rmsnorm(x, residual, inputs["weight"], scalars["eps"])
    normed_out = Expected(normed, round_to_bf16(normed), np.ones(x.shape, dtype=np.bool_))
    scales = _block_scales(normed_out.rounded)
    return {
        "out": Expected(
            normed,
            _codes(normed, scales),
            np.ones(x.shape, dtype=np.bool_),
            scaled_by=ScaledBy("block_scale", _BLOCK),
        ),
        "block_scale": _transposed(scales),
        "normed_out": normed_out,
        "residual": expected_residual(x, residual),
    }


def _block_scales(normed: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the exact scales (rows, H / 128) of bf16 values (rows, H)."""
    rows, columns = normed.shape
    scales = np.empty((rows, columns // _BLOCK), dtype=np.float64)

    def scale(chunk: slice) -> None:
        magnitude = np.abs(decode(normed[chunk])).reshape(-1, columns // _BLOCK, _BLOCK)
        scales[chunk] = np.maximum(magnitude.max(axis=2), _LEAST_AMAX) / E4M3_MAX

    for_row_chunks(rows, columns, scale)
    return scales


def _codes(normed: npt.NDArray[np.float64], scales: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """Return e4m3(normed / scale) with the scale as it is stored, in fp32."""
    stored = scales.astype(np.float32).astype(np.float64)
    rows, columns = normed.shape
    codes = np.empty((rows, columns), dtype=round_to_e4m3(0.0).dtype)

    def quantize(chunk: slice) -> None:
        blocks = normed[chunk].reshape(-1, columns // _BLOCK, _BLOCK)
        codes[chunk] = round_to_e4m3(blocks / stored[chunk][:, :, None]).reshape(-1, columns)

    for_row_chunks(rows, columns, quantize)
    return codes


def _transposed(scales: npt.NDArray[np.float64]) -> Expected:
    """Return logical (B, H / 128) scales in their storage (H / 128, align_up(B, 4)).

    The scale of row b and block k lies at element k * align_up(B, 4) + b. The up to three padding
    columns of each block row are not part of the result and stay as they were.
    """
    rows, blocks = scales.shape
    padded_rows = -(-rows // 4) * 4
    rounded = np.zeros((blocks, padded_rows), dtype=np.float32)
    rounded[:, :rows] = scales.T
    written = np.zeros((blocks, padded_rows), dtype=np.bool_)
    written[:, :rows] = True
    b = np.arange(rows, dtype=np.int64)[:, None]
    k = np.arange(blocks, dtype=np.int64)[None, :]
    return Expected(scales, rounded, written, logical_offsets=k * padded_rows + b)
