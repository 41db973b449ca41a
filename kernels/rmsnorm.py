"""Add + RMSNorm in fp64, as the problems that fuse it with something else share it.

    h = x + r            residual <- bf16(fp32(h))
    y = h * rstd * w     rstd = 1 / sqrt(mean(h^2) + eps)

What is done with y (bf16, fp8, nvfp4) belongs to each problem's oracle.

Source: Zhang, Sennrich, "Root Mean Square Layer Normalization", NeurIPS 2019, equation 4; the order
of roundings is FlashInfer's `fused_add_rmsnorm`: h stays fp32, only its store is rounded.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from .dtypes import numpy_dtype
from .input_regimes import Magnitudes, draw_amplitudes, draw_values
from .oracle import Between, Expected
from .rounding import decode, round_to_bf16
from .row_chunks import for_row_chunks

_FP32_STEPS = 2.0**-20  # of rstd: sums in any order, an approximate square root


def exact_add_rmsnorm(
    x: npt.NDArray[Any], residual: npt.NDArray[Any], weight: npt.NDArray[Any], eps: float
) -> npt.NDArray[np.float64]:
    """Return the normed sum (rows, columns) in fp64, before any rounding.

    Args:
        x: (rows, columns) bfloat16.
        residual: (rows, columns) bfloat16, before the call.
        weight: (columns,) bfloat16.
        eps: Added to the mean square. Kernels get it as fp32, so it is rounded to fp32 here too.
    """
    rows, columns = x.shape
    eps = float(np.float32(eps))
    wide_weight = decode(weight)
    normed = np.empty((rows, columns), dtype=np.float64)

    def norm(chunk: slice) -> None:
        h = decode(x[chunk]) + decode(residual[chunk])
        mean_square = np.einsum("ij,ij->i", h, h)[:, None] / columns
        normed[chunk] = h / np.sqrt(mean_square + eps) * wide_weight

    for_row_chunks(rows, columns, norm)
    return normed


def add_rmsnorm_in_steps(
    x: npt.NDArray[Any], residual: npt.NDArray[Any], weight: npt.NDArray[Any], eps: float
) -> Between:
    """Return the normed sum, unrounded, of kernels that round h and h * rstd to bfloat16.

    Many frameworks do: the product with the weight comes last, of two bfloat16 values. The squares
    may be those of h before or after its rounding, and fp32 leaves something of its own.
    """
    rows, columns = x.shape
    eps = float(np.float32(eps))
    wide_weight = decode(weight)
    ends = Between(*(np.empty((rows, columns), dtype=np.float64) for _ in range(2)))

    def norm(chunk: slice) -> None:
        exact = decode(x[chunk]) + decode(residual[chunk])
        h = decode(round_to_bf16(exact))
        squares = [np.einsum("ij,ij->i", v, v)[:, None] / columns for v in (exact, h)]
        largest, least = np.maximum(*squares), np.minimum(*squares)
        for end, mean_square, fp32 in (
            (ends.one, largest, 1 - _FP32_STEPS),
            (ends.other, least, 1 + _FP32_STEPS),
        ):
            rstd = fp32 / np.sqrt(mean_square + eps)
            end[chunk] = decode(round_to_bf16(h * rstd)) * wide_weight

    for_row_chunks(rows, columns, norm)
    return ends


def draw_add_rmsnorm_inputs(
    rng: np.random.Generator, shape: tuple[int, int], regime: str
) -> dict[str, npt.NDArray[Any]]:
    """Return `input`, `residual` and `weight` in bfloat16 for one of `REGIMES`.

    Tiny values (2^-26) drown in eps, so that block maxima fall below the 1e-4 that the fp8 block
    scale is clamped to; the squares of huge ones (2^40) still add up within fp32.
    """
    bfloat16 = numpy_dtype("bfloat16")
    amplitudes = draw_amplitudes(rng, shape, regime, Magnitudes(tiny=2.0**-26, huge=2.0**40))
    weight = 1.0 + 0.25 * rng.standard_normal(shape[1], dtype=np.float32)
    return {
        "input": draw_values(rng, shape, amplitudes).astype(bfloat16),
        "residual": draw_values(rng, shape, amplitudes).astype(bfloat16),
        "weight": weight.astype(bfloat16),
    }


def expected_residual(x: npt.NDArray[Any], residual: npt.NDArray[Any]) -> Expected:
    """Return the updated residual, bf16(x + residual), which is bit-exact.

    Kernels round the sum to fp32 first. That does not move the result: 24 bits of significand are
    at least 2 * 8 + 2, and so are the 53 of the fp64 sum here.

    Source:
        Figueroa, "When is double rounding innocuous?", SIGNUM Newsletter 30(3), 1995: addition.
    """
    exact = np.empty(x.shape, dtype=np.float64)

    def add(chunk: slice) -> None:
        np.add(decode(x[chunk]), decode(residual[chunk]), out=exact[chunk])

    for_row_chunks(x.shape[0], x.shape[1], add)
    written = np.ones(x.shape, dtype=np.bool_)
    return Expected(exact, round_to_bf16(exact), written, bit_exact=True)
