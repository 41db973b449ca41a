"""Oracle of gemm_bf16: products of bfloat16 values summed in fp64 and rounded once.

What honest kernels leave before that rounding is the error of a sum in fp32, in any order: one
after the other, in pairs, in parts that are added in fp32, or by tensor cores, which cut off what
the largest of the terms shifts out. Partial sums in bfloat16 or fp16 are no such order.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.input_regimes import Magnitudes, draw_amplitudes, draw_values
from kopt.kernels.oracle import Arrays, Expected
from kopt.kernels.problem import Workload
from kopt.kernels.rounding import decode, round_to_bf16
from kopt.kernels.wide_work import slices

_MAGNITUDES = Magnitudes(tiny=2.0**-20, huge=2.0**20)
_ROWS = 1024
"""So many rows of either operand are in fp64 at once: temporaries stay below 1 GB."""


def make_inputs(
    workload: Workload, rng: np.random.Generator, regime: str
) -> dict[str, npt.NDArray[Any]]:
    """Return `x` (M, K) and `weight` (N, K), both in the regime and bfloat16.

    Weights are smaller by sqrt(K), so that results are about as large as the values of x.
    """
    rows, columns, depth = (workload.axes[name] for name in "MNK")
    amplitudes = draw_amplitudes(rng, (rows, depth), regime, _MAGNITUDES)
    weights = draw_amplitudes(rng, (columns, depth), regime, _MAGNITUDES)
    weights *= np.float32(depth**-0.5)
    bfloat16 = numpy_dtype("bfloat16")
    return {
        "x": draw_values(rng, (rows, depth), amplitudes).astype(bfloat16),
        "weight": draw_values(rng, (columns, depth), weights).astype(bfloat16),
    }


def expected(inputs: Arrays, scalars: Mapping[str, float | int]) -> dict[str, Expected]:
    """Return `out`; the problem has no scalars."""
    del scalars
    x, weight = inputs["x"], inputs["weight"]
    shape = (x.shape[0], weight.shape[0])
    exact, slack = np.empty(shape, dtype=np.float64), np.empty(shape, dtype=np.float64)
    for columns in slices(shape[1], _ROWS):
        wide, squares = decode(weight[columns]).T, _scaled_squares(weight[columns])
        for rows in slices(shape[0], _ROWS):
            exact[rows, columns] = decode(x[rows]) @ wide
            size = _root_of_squares(_scaled_squares(x[rows]), squares)
            slack[rows, columns] = _fp32_error(exact[rows, columns], size, x.shape[1])
    every = np.ones(shape, dtype=np.bool_)
    return {"out": Expected(exact, round_to_bf16(exact), every, slack=slack, one_rounding=True)}


def _fp32_error(
    exact: npt.NDArray[np.float64], size: npt.NDArray[np.float64], depth: int
) -> npt.NDArray[np.float64]:
    """Return the largest error to accept of an fp32 sum of `depth` products, before its rounding.

    u = 2^-24 is the largest relative error of an fp32 rounding to the nearest.

    - Terms of one sign: partial sums grow up to |exact|, and each addition errs by u of them, to
      one side where values are cut off: depth * u * |exact| / 2. Tensor cores come to half of it.
    - Terms of both signs: partial sums wander, to some `size`. Errors of one addition after the
      other have either sign, a deviation of at most u * sqrt(depth / 6) * size: five are allowed.
      Tensor cores add 8 products or more at once and cut off towards 0, by up to 2 u: depth / 8 of
      these, half of it on average, of partial sums half as large on average. A third is added for
      the elements whose partial sums are larger.

    Source: Higham, "Accuracy and Stability of Numerical Algorithms", 2nd edition, chapter 4; Fasi,
    Higham, Mikaitis, Pranesh, "Numerical behavior of NVIDIA tensor cores", PeerJ Computer Science
    7, 2021. tests/kernels/test_gemm_oracle.py emulates both.

    Args:
        exact: The sums.
        size: Root of the sum of each element's squared products.
        depth: Products of a sum.
    """
    u = 2.0**-24
    slack: npt.NDArray[np.float64] = np.abs(exact) * (depth * u / 2)
    slack += size * (u * (2 * depth**0.5 + depth / 12))
    return slack


_Squares = tuple[npt.NDArray[np.float32], npt.NDArray[np.float64]]


def _scaled_squares(matrix: npt.NDArray[Any]) -> _Squares:
    """Return squares in [0, 1] and what their roots were divided by, a number for each row.

    A percent of them matters: float32 takes half the time, and holds the squares of any row then.
    """
    values = np.abs(matrix.astype(np.float32))
    largest = values.max(axis=1, initial=0.0)
    values /= np.where(largest > 0, largest, 1)[:, None]
    return np.square(values, out=values), largest.astype(np.float64)


def _root_of_squares(x: _Squares, weight: _Squares) -> npt.NDArray[np.float64]:
    sums = (x[0] @ weight[0].T).astype(np.float64)
    root: npt.NDArray[np.float64] = np.sqrt(sums, out=sums)
    root *= x[1][:, None]
    root *= weight[1]
    return root
