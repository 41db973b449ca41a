"""NVFP4 quantisation as the oracles compute it: exact block scales, rounded scales, packed codes.

Sixteen consecutive values of the last axis form a block. With a global scale g the block's scale is
e4m3(min(g * max|v| / 6, 448)) and its codes are e2m1(v * g / scale), so that v is about
code * scale / g. This module knows no operator and draws no inputs:
`nvfp4_operators.py` does.

Source: NVIDIA, "Introducing NVFP4 for efficient and accurate low-precision inference" (2025);
FlashInfer `fp4_quantize`, whose approximate reciprocals are exact divisions here.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from .layouts import padded_sf_128x4_shape, sf_128x4_offsets, to_sf_128x4
from .oracle import Expected, ScaledBy
from .problem import Layout
from .rounding import E2M1_MAX, E4M3_MAX, decode, pack_e2m1, round_to_e2m1, round_to_e4m3

BLOCK_SIZE = 16


@dataclass(frozen=True)
class QuantizedBlocks:
    """A tensor of shape (..., n) in NVFP4."""

    scaled: npt.NDArray[np.float64]
    """(..., n): value times global scale, before the division by the block's scale."""
    global_scale: npt.NDArray[np.float64]
    """Broadcasts against `scaled`."""
    exact_scales: npt.NDArray[np.float64]
    """(..., n / 16): the block scales before rounding, at most 448."""
    scales: npt.NDArray[Any]
    """(..., n / 16) float8_e4m3fn."""
    packed: npt.NDArray[np.uint8]
    """(..., n / 2): two e2m1 codes a byte, the even element in the low nibble."""


def global_scale_of(amax: float) -> np.float32:
    """Return 448 * 6 / amax: the block that holds `amax` gets the largest scale; 1 for amax 0."""
    return np.float32(E4M3_MAX * E2M1_MAX / amax) if amax > 0 else np.float32(1)


def quantize_blocks(
    values: npt.NDArray[np.float64], global_scale: npt.NDArray[np.float64]
) -> QuantizedBlocks:
    """Return (..., n) `values` in NVFP4; n is a multiple of 16.

    A block whose scale rounds to 0 (all zeros, or below 2^-10) has codes 0: dequantised it is 0
    whatever its codes, and there is nothing to divide by.

    Args:
        values: Finite.
        global_scale: Broadcasts against `values`: () for one scale, (B, 1, 1) for one per expert.
    """
    scaled = values * global_scale
    blocks = scaled.reshape(*scaled.shape[:-1], -1, BLOCK_SIZE)
    exact_scales = np.minimum(np.abs(blocks).max(axis=-1) / E2M1_MAX, E4M3_MAX)
    scales = round_to_e4m3(exact_scales)
    divisor = decode(scales)[..., None]
    quotient = np.zeros_like(blocks)
    np.divide(blocks, divisor, out=quotient, where=divisor > 0)
    packed = pack_e2m1(round_to_e2m1(quotient).reshape(scaled.shape))
    return QuantizedBlocks(scaled, global_scale, exact_scales, scales, packed)


def expected_outputs(
    quantized: QuantizedBlocks, layout: Layout, valid: npt.NDArray[np.bool_]
) -> dict[str, Expected]:
    """Return what the tensors `out` (packed codes) and `block_scale` must hold.

    Args:
        quantized: Of shape (..., rows, n); leading axes are batches.
        layout: Of `block_scale`. Padding of `sf_128x4` is not part of the result: not written.
        valid: (..., rows), False for rows that must be left as they are.
    """
    codes = Expected(
        exact=quantized.scaled,
        rounded=quantized.packed,
        written=np.broadcast_to(valid[..., None], quantized.packed.shape),
        scaled_by=ScaledBy("block_scale", BLOCK_SIZE),
        unit=1 / quantized.global_scale,
    )
    written = np.broadcast_to(valid[..., None], quantized.scales.shape)
    if layout == "row_major":
        scales = Expected(quantized.exact_scales, quantized.scales, written)
    else:
        tiled = to_sf_128x4(quantized.scales.view(np.uint8), 0).view(quantized.scales.dtype)
        scales = Expected(
            exact=quantized.exact_scales,
            rounded=tiled,
            written=to_sf_128x4(written, False),
            logical_offsets=_batched_offsets(quantized.scales.shape),
        )
    return {"out": codes, "block_scale": scales}


def _batched_offsets(shape: tuple[int, ...]) -> npt.NDArray[np.int64]:
    """Return, in `shape`, where each scale lies when every batch is padded on its own."""
    *batch, rows, columns = shape
    tile_starts = np.arange(np.prod(batch, dtype=np.int64)) * padded_sf_128x4_shape(rows, columns)
    offsets: npt.NDArray[np.int64] = tile_starts[:, None, None] + sf_128x4_offsets(rows, columns)
    return offsets.reshape(shape)
