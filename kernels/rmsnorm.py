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
from .oracle import Expected
from .rounding import round_to_bf16
from .row_chunks import row_chunks


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
    wide_weight = weight.astype(np.float64)
    normed = np.empty((rows, columns), dtype=np.float64)
    for chunk in row_chunks(rows, columns):
        h = x[chunk].astype(np.float64) + residual[chunk].astype(np.float64)
        mean_square = np.einsum("ij,ij->i", h, h)[:, None] / columns
        normed[chunk] = h / np.sqrt(mean_square + eps) * wide_weight
    return normed


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
    """Return the updated residual: one bf16 rounding of the fp32 sum, which is bit-exact.

    The fp32 sum of two bf16 values is itself rounded when their exponents are far apart, and every
    kernel stores the bf16 of that sum. `rounded` takes both steps; `exact` takes none.
    """
    exact = np.empty(x.shape, dtype=np.float64)
    rounded = np.empty_like(x)
    for chunk in row_chunks(*x.shape):
        exact[chunk] = x[chunk].astype(np.float64) + residual[chunk].astype(np.float64)
        stored = x[chunk].astype(np.float32) + residual[chunk].astype(np.float32)
        rounded[chunk] = round_to_bf16(stored.astype(np.float64))
    return Expected(exact, rounded, np.ones(x.shape, dtype=np.bool_), bit_exact=True)
