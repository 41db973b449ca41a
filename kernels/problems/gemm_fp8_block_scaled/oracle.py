"""Oracle of gemm_fp8_block_scaled: products of scaled fp8 codes, summed in fp64 and rounded once.

What honest kernels leave before that rounding is mostly the error of Hopper's tensor cores, which
keep about 14 bits of a sum of fp8 products: of 128 products, whose sum is then scaled and added to
the others in fp32. A sum that stays in their registers for the whole of K is no such order.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected
from kopt.kernels.problem import Workload
from kopt.kernels.rounding import E4M3_MAX, decode, round_to_bf16, round_to_e4m3
from kopt.kernels.row_chunks import for_row_chunks
from kopt.kernels.wide_work import slices

DERIVED_REGIMES = ()
"""They change floating-point tensors; these are codes and their scales, which belong together."""

_BLOCK = 128
_MAGNITUDES = Magnitudes(tiny=2.0**-20, huge=2.0**20)
_LEAST_AMAX = 2.0**-40
"""Blocks of zeros have a scale, too."""
_PADDING = 2.0**20
"""Stands where x has no rows: a result that it takes part in is wrong by far."""
_ROWS = 1024
"""So many rows of either operand are in fp64 at once: temporaries stay below 1 GB."""
_Floats = npt.NDArray[np.float64]


def make_inputs(
    workload: Workload, rng: np.random.Generator, regime: str
) -> dict[str, npt.NDArray[Any]]:
    """Return codes `x` (M, K) and `weight` (N, K) of values in the regime, and their scales.

    A block's scale is its largest magnitude divided by 448, as quantisers choose it. Blocks of one
    operand differ in size by a factor of up to 4, so that none has another one's scale. Weights are
    smaller by sqrt(K), so that results are about as large as the values of x.
    """
    rows, columns, depth = (workload.axes[name] for name in "MNK")
    x = _draw(rng, (rows, depth), regime, 1)
    weight = _draw(rng, (columns, depth), regime, _BLOCK)
    weight *= np.float32(depth**-0.5)
    x_codes, x_scale = _quantized(x, 1)
    codes, weight_scale = _quantized(weight, _BLOCK)
    padded = np.full((depth // _BLOCK, workload.axes["MP"]), _PADDING, dtype=np.float32)
    padded[:, :rows] = x_scale.T
    return {"x": x_codes, "x_scale": padded, "weight": codes, "weight_scale": weight_scale}


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return `out`; the problem has no scalars."""
    del scalars
    x, weight = inputs["x"], inputs["weight"]
    x_scale = inputs["x_scale"][:, : len(x)].T
    weight_scale = np.repeat(inputs["weight_scale"], _BLOCK, axis=0)[: len(weight)]
    shape = (len(x), len(weight))
    exact, slack = np.empty(shape, dtype=np.float64), np.empty(shape, dtype=np.float64)
    for columns in slices(shape[1], _ROWS):
        wide = _scaled(weight[columns], weight_scale[columns])
        of_weight = _magnitude(wide)
        for rows in slices(shape[0], _ROWS):
            values = _scaled(x[rows], x_scale[rows])
            exact[rows, columns] = values @ wide.T
            size, peak = _size_and_peak(_magnitude(values), of_weight)
            slack[rows, columns] = _error(exact[rows, columns], size, peak)
    every = np.ones(shape, dtype=np.bool_)
    return {"out": Expected(exact, round_to_bf16(exact), every, slack=slack, one_rounding=True)}


def _error(exact: _Floats, size: _Floats, peak: _Floats) -> _Floats:
    """Return the largest error to accept of a sum in tensor cores, before its rounding.

    Hopper's tensor cores add 32 products of fp8 at once to a sum, all of these cut off at about 14
    bits of the largest: at u = 2^-13 of it, less than one u each. Of 128 products, added to fp32
    sums then, that leaves errors of either sign, a deviation of about `size` * u where products are
    alike. Where one of a block's products dominates, the other 127 are cut off at its bits: up to
    6.5 u of it, which `peak` tells. Sums of one sign err to one side, by 6 u where products are
    alike. The factors are four to five such deviations, and a third more than that for sums of one
    sign. Errors of fp32 are a 2,000th of these.

    Source: DeepSeek-AI, "DeepSeek-V3 Technical Report", section 3.3.2, 2024; Fasi, Higham,
    Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science 7, 2021.
    tests/kernels/test_fp8_gemm_oracle.py emulates it.

    Args:
        exact: The sums.
        size: Root of the sum of each element's squared products.
        peak: Fourth root of the sum of their fourth powers, close to the largest product where that
            is far from the others.
    """
    u = 2.0**-13
    slack: _Floats = np.abs(exact) * (8 * u)
    slack += np.hypot(5 * u * size, 28 * u * peak)
    return slack


def _draw(
    rng: np.random.Generator, shape: tuple[int, int], regime: str, rows: int
) -> npt.NDArray[np.float32]:
    """Return values in the regime; those of a block of `rows` rows and 128 columns have a size."""
    values = draw_values(rng, shape, draw_amplitudes(rng, shape, regime, _MAGNITUDES))
    sizes = np.exp2(rng.uniform(-1, 1, (-(-shape[0] // rows), shape[1] // _BLOCK)))
    for part in slices(shape[0], _ROWS):
        of_rows = np.arange(part.start, part.stop, dtype=np.int64) // rows
        values[part] *= np.repeat(sizes[of_rows], _BLOCK, axis=1).astype(np.float32)
    return values


def _quantized(
    values: npt.NDArray[np.float32], rows: int
) -> tuple[npt.NDArray[Any], npt.NDArray[np.float32]]:
    """Return codes and scales of blocks of `rows` rows and 128 columns; the last may be shorter."""
    count, columns = values.shape
    codes = np.empty(values.shape, dtype=round_to_e4m3(0.0).dtype)
    largest = np.empty((count, columns // _BLOCK), dtype=np.float32)

    def measure(part: slice) -> None:
        blocks = np.abs(values[part]).reshape(-1, columns // _BLOCK, _BLOCK)
        largest[part] = blocks.max(axis=2)

    for_row_chunks(count, columns, measure)
    first_rows = np.arange(0, count, rows, dtype=np.int64)
    largest = np.maximum.reduceat(largest, first_rows, axis=0)
    scales = (np.maximum(largest, _LEAST_AMAX) / E4M3_MAX).astype(np.float32)

    def quantize(part: slice) -> None:
        of_rows = scales[np.arange(part.start, part.stop, dtype=np.int64) // rows]
        blocks = values[part].reshape(-1, columns // _BLOCK, _BLOCK)
        codes[part] = round_to_e4m3(blocks / of_rows[:, :, None].astype(np.float64)).reshape(
            -1, columns
        )

    for_row_chunks(count, columns, quantize)
    return codes, scales


def _scaled(codes: npt.NDArray[Any], scales: npt.NDArray[np.float32]) -> _Floats:
    """Return the values of codes, each block of 128 columns times the scale of its row."""
    values = decode(codes).reshape(*scales.shape, _BLOCK)
    values *= scales[:, :, None]
    return values.reshape(codes.shape)


@dataclass(frozen=True)
class _Magnitude:
    """The squares of a matrix in [0, 1], and what their roots were divided by: one for each row.

    A percent of them matters: float32 takes half the time, and holds the squares of any row then.
    """

    squares: npt.NDArray[np.float32]
    largest: _Floats


def _magnitude(matrix: _Floats) -> _Magnitude:
    values = np.abs(matrix)
    largest = values.max(axis=1, initial=0.0)
    values /= np.where(largest > 0, largest, 1)[:, None]
    return _Magnitude(np.square(values.astype(np.float32)), largest)


def _size_and_peak(x: _Magnitude, weight: _Magnitude) -> tuple[_Floats, _Floats]:
    """Return the roots of the sums of all products' second and fourth powers."""
    size = np.sqrt(x.squares @ weight.squares.T).astype(np.float64)
    fourth = np.square(x.squares) @ np.square(weight.squares).T
    peak = np.sqrt(np.sqrt(fourth)).astype(np.float64)
    for sums in (size, peak):
        sums *= x.largest[:, None]
        sums *= weight.largest
    return size, peak
