"""NVFP4 quantisation as the oracles compute it: exact block scales, rounded scales, packed codes.

Sixteen consecutive values of the last axis form a block. With a global scale g the block's scale is
e4m3(min(g * max|v| / 6, 448)) and its codes are e2m1(v * g / scale), so that v is about
code * scale / g. This module knows no operator and draws no inputs:
`nvfp4_operators.py` does.

Source: NVIDIA, "Introducing NVFP4 for efficient and accurate low-precision inference" (2025);
FlashInfer `fp4_quantize`, whose approximate reciprocals are exact divisions here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from .layouts import padded_sf_128x4_shape, sf_128x4_offsets, to_sf_128x4
from .narrowing import keep_exact, kept_dtype
from .oracle import Expected, ScaledBy
from .problem import Layout
from .rounding import E2M1_MAX, E4M3_MAX, decode, pack_e2m1, round_to_e2m1, round_to_e4m3
from .row_chunks import for_row_chunks

BLOCK_SIZE = 16


@dataclass(frozen=True)
class QuantizedBlocks:
    """A tensor of shape (..., n) in NVFP4."""

    scaled: npt.NDArray[np.floating[Any]]
    """(..., n): value times global scale, before the division by the block's scale. Float64;
    float32 under `float32_is_enough`, where its range suffices."""
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
    """Return (..., n) `values` in NVFP4, as `quantize_rows` does.

    Args:
        values: Finite.
        global_scale: Broadcasts against `values`: () for one scale, (B, 1, 1) for one per expert.
    """
    rows = values.reshape(-1, values.shape[-1])
    return quantize_rows(rows.__getitem__, values.shape, global_scale)


def quantize_rows(
    compute: Callable[[slice], npt.NDArray[np.float64]],
    shape: tuple[int, ...],
    global_scale: npt.NDArray[np.float64],
) -> QuantizedBlocks:
    """Return values of `shape` (..., n) in NVFP4, computed a few rows at a time; 16 divides n.

    A block whose scale rounds to 0 (all zeros, or below 2^-10) has codes 0: dequantised it is 0
    whatever its codes, and there is nothing to divide by.

    Args:
        compute: Gives some rows of the values, all leading axes in one: finite, and not changed.
            Called by several threads.
        shape: Of all values.
        global_scale: Broadcasts against values; its last axis, if any, is 1.
    """
    *leading, columns = shape
    rows = prod(leading)
    factors = np.broadcast_to(global_scale, (*leading, 1)).reshape(rows, 1)
    kept = np.zeros((rows, columns), dtype=kept_dtype())
    exact_scales = np.zeros((rows, columns // BLOCK_SIZE))
    scales = round_to_e4m3(exact_scales)
    packed = np.zeros((rows, columns // 2), dtype=np.uint8)

    def quantize(part: slice) -> bool:
        values = compute(part)
        if not np.any(values.view(np.int64)):  # rows behind a mask; -0.0 has a bit
            return True
        scaled = values * factors[part]
        is_kept = keep_exact(kept[part], scaled)
        blocks = scaled.reshape(-1, BLOCK_SIZE)
        exact = np.minimum(_largest(np.abs(blocks)) / E2M1_MAX, E4M3_MAX)
        rounded = round_to_e4m3(exact)
        divisor = decode(rounded)[:, None]
        with np.errstate(divide="ignore", invalid="ignore"):
            quotient = np.divide(blocks, divisor, out=blocks)
        quotient[divisor[:, 0] == 0] = 0
        exact_scales[part] = exact.reshape(-1, exact_scales.shape[1])
        scales[part] = rounded.reshape(-1, exact_scales.shape[1])
        packed[part] = pack_e2m1(round_to_e2m1(quotient).reshape(-1, columns))
        return is_kept

    if not all(for_row_chunks(rows, columns, quantize)):
        kept = _scaled(compute, factors, kept.shape)
    return QuantizedBlocks(
        kept.reshape(shape),
        global_scale,
        exact_scales.reshape(*leading, -1),
        scales.reshape(*leading, -1),
        packed.reshape(*leading, -1),
    )


def _scaled(
    compute: Callable[[slice], npt.NDArray[np.float64]],
    factors: npt.NDArray[np.float64],
    shape: tuple[int, int],
) -> npt.NDArray[np.float64]:
    """Return rows of values times their factors, in float64."""
    scaled = np.empty(shape)

    def scale(part: slice) -> None:
        np.multiply(compute(part), factors[part], out=scaled[part])

    for_row_chunks(*shape, scale)
    return scaled


def _largest(sizes: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the largest of each BLOCK_SIZE consecutive values."""
    largest = sizes.reshape(-1)  # pair by pair: numpy's maximum over a short axis takes four times
    for _ in range(BLOCK_SIZE.bit_length() - 1):
        largest = np.maximum(largest[0::2], largest[1::2])
    return largest


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
