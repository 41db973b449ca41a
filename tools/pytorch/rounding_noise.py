"""Roundings as random numbers: what honest float32 arithmetic may leave, sampled.

Monte Carlo arithmetic: a graph runs in float64, and each inexact result is moved by a random
multiple of what its roundings may have done. The spread of the outputs over several such runs is
the spread of honest kernels, whatever their order of operations.

A result y of one operation is off by u * |y|, with u = 2^-24 in float32. A sum of K terms, added
one after the other, is off by u * sqrt(1 + K / 3) * sqrt(y^2 + sum(term^2)): the partial sums grow
evenly towards y, and wander by the terms. Half of each variance is shared by the whole tensor, for
errors of a factor that many elements have in common do not average out. A common factor moves
values of either sign apart, so that the shared part has the sign of what it moves: where they
cancel in a sum, it does too.

Source: Parker, Monte Carlo Arithmetic (1997); Higham, Accuracy and Stability of Numerical
Algorithms, chapter 4, for the sums.
"""

from dataclasses import dataclass
from math import prod, sqrt
from typing import Any

from .torch_library import Tensor

UNIT = {"float32": 2.0**-24, "bfloat16": 2.0**-24, "float16": 2.0**-24, "float64": 2.0**-53}
"""Unit roundoff of what computes a result of this dtype: 16 bits are computed in float32."""
STORED = {"bfloat16": 2.0**-7 / sqrt(24), "float16": 2.0**-10 / sqrt(24)}
"""Root mean square of the relative error of one rounding into the format."""
TF32 = 2.0**-10 / sqrt(24)
"""The same of an operand that is rounded to TF32, which has float16's significand."""


@dataclass
class Roundings:
    """One sample of all roundings of a run."""

    torch: Any
    generator: Any
    """torch.Generator: runs with one seed are equal."""
    tf32: frozenset[str] = frozenset()
    """Contractions whose operands may be rounded to TF32."""
    unit: float = UNIT["float32"]

    def moved(self, exact: Tensor, deviation: Tensor | float) -> Tensor:
        """Return `exact` moved by a sample of this deviation, half of its variance shared.

        Infinities stay as they are, and so does what an infinity makes of no size: exp(-inf).
        """
        own = self.torch.rand(exact.shape, generator=self.generator).sub_(0.5)
        shared = float(self.torch.rand((), generator=self.generator)) - 0.5
        # In place, where memory that is new takes longer than the arithmetic.
        away = exact.sign().mul_(shared).add_(own).mul_(sqrt(0.5 * 12.0))
        return (deviation * away).nan_to_num_(0.0, 0.0, 0.0).add_(exact)

    def rounded(self, exact: Tensor, times: float = 1.0) -> Tensor:
        """Return `exact` after `times` units of relative error."""
        return self.moved(exact, exact.abs().mul_(self.unit * times))

    def stored(self, exact: Tensor, dtype: str) -> Tensor:
        """Return `exact` after it was stored in 16 bits; other dtypes leave it alone."""
        return self.moved(exact, exact.abs().mul_(STORED[dtype])) if dtype in STORED else exact

    def added(self, total: Tensor, squares: Tensor, terms: float) -> Tensor:
        """Return the sum `total` of `terms` terms, whose squares add up to `squares`."""
        size = self.torch.sqrt(total * total + squares.clamp_min(0.0))
        return self.moved(total, size * (self.unit * sqrt(1.0 + terms / 3.0)))

    def contracted(self, name: str, total: Tensor, squares: Tensor, terms: float) -> Tensor:
        """Return a sum of products, whose operands may have been rounded to TF32 before."""
        result = self.added(total, squares, terms)
        if name not in self.tf32:
            return result
        return self.moved(result, self.torch.sqrt(squares.clamp_min(0.0) * 2.0) * TF32)

    def sum(self, values: Tensor, dims: list[int], keepdim: bool = True) -> Tensor:
        """Return the sum over `dims` in some order."""
        total = values.sum(dims, keepdim=keepdim)
        squares = (values * values).sum(dims, keepdim=keepdim)
        return self.added(total, squares, prod(values.shape[dim] for dim in dims))

    def mean(self, values: Tensor, dims: list[int], keepdim: bool = True) -> Tensor:
        """Return the mean over `dims`."""
        count = prod(values.shape[dim] for dim in dims)
        return self.rounded(self.sum(values, dims, keepdim) / count)

    def variance(self, values: Tensor, dims: list[int]) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean, distances from it and their mean square over `dims`, which are kept."""
        mean = self.mean(values, dims)
        apart = self.rounded(values - mean)
        return mean, apart, self.mean(self.rounded(apart * apart), dims)
