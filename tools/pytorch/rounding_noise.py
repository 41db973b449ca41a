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

from collections.abc import Callable
from dataclasses import dataclass
from math import prod, sqrt
from typing import Any

from kopt.kernels.wide_work import run_wide, slices

from .torch_library import Tensor, threads_of

UNIT = {"float32": 2.0**-24, "bfloat16": 2.0**-24, "float16": 2.0**-24, "float64": 2.0**-53}
"""Unit roundoff of what computes a result of this dtype: 16 bits are computed in float32."""
STORED = {"bfloat16": 2.0**-7 / sqrt(24), "float16": 2.0**-10 / sqrt(24)}
"""Root mean square of the relative error of one rounding into the format."""
TF32 = 2.0**-10 / sqrt(24)
"""The same of an operand that is rounded to TF32, which has float16's significand."""

BLOCK_ELEMENTS = 1 << 17
"""Elements that are moved at once: float64 temporaries of 1 MiB stay in a core's cache.

With fewer, threads wait for one another's Python: on 2 cores, runs of 1.8 million elements took
1.4 times as long with 2^15.
"""

GPU_BLOCK_ELEMENTS = 1 << 24
"""Elements that are moved at once on a GPU: they keep all processors at work, in 128 MiB."""

WIDE_ELEMENTS = 1 << 21
"""Elements of a result from which on several threads move it, each so many at once."""

WIDE_SCALE = 16.0
"""How many times larger roundings are in half of the runs, whose distances count the less for it.

An element may be 12 deviations off, and a function may have a kink as far away: of relu at -2
deviations few runs show anything, and of honest results some do. Where functions are smooth over
that range both kinds of runs say the same. They come in pairs of opposite roundings: of a kink one
of the two is on the other side.

Source: test_budget_of_many.py: of 32,768 elements alone below a kink, by up to 4 deviations, honest
runs alone refuse 362 right ones, those with a scale of 8 three, of 16 two, of 24 none. A larger
scale leaves the range in which smooth functions are straight.
"""
WIDEST = 2.4
"""Deviations that the largest distance of a wide run stands for, of normal ones one in sixty."""

Deviation = Callable[[Tensor, Tensor], Tensor]
"""Returns new standard deviations of a block of results, from it and from the block beside it."""


def block_elements(tensor: Tensor) -> int:
    """Return how many elements of `tensor` are worked on at once."""
    return BLOCK_ELEMENTS if tensor.is_cpu else GPU_BLOCK_ELEMENTS


@dataclass(frozen=True)
class SampledRun:
    """One run whose roundings are sampled."""

    seed: int
    """What its random numbers are drawn from."""
    scale: float
    """How many times larger than honest ones its roundings are."""

    @property
    def is_wide(self) -> bool:
        """Whether they are larger than honest ones."""
        return self.scale != 1.0


def nth_run(place: int) -> SampledRun:
    """Return the sampled run at `place`: of four in a row two are wide, with opposite roundings."""
    if place % 2 == 0:
        return SampledRun(place, 1.0)
    is_opposite = place % 4 == 3
    return SampledRun(
        place - 2 if is_opposite else place, -WIDE_SCALE if is_opposite else WIDE_SCALE
    )


@dataclass
class Roundings:
    """One sample of all roundings of a run."""

    torch: Any
    generator: Any
    """torch.Generator: runs with one seed are equal."""
    tf32: frozenset[str] = frozenset()
    """Contractions whose operands may be rounded to TF32."""
    unit: float = UNIT["float32"]
    scale: float = 1.0
    """How many times larger than honest ones all roundings are (`SampledRun`)."""

    def moved(self, exact: Tensor, deviation: Deviation, beside: Tensor | None = None) -> Tensor:
        """Return `exact` moved by a sample of its deviation, half of the variance shared.

        Infinities stay as they are, and so does what an infinity makes of no size: exp(-inf).

        Args:
            exact: The result of an operation.
            deviation: Called with each block of it.
            beside: What the deviation depends on, too; broadcasts to the shape of `exact`.
        """
        own = self.generator
        shared = float(self.torch.rand((), generator=own, device=own.device)) - 0.5
        size = block_elements(exact)
        moved = self.torch.empty(exact.shape, dtype=exact.dtype, device=exact.device)
        flat = moved.view(-1)
        given = exact.reshape(-1)
        others = given if beside is None else beside.expand(exact.shape).reshape(-1)

        def move(part: slice, generator: Any) -> None:
            drawn = self.torch.empty(min(part.stop - part.start, size), device=exact.device)
            # By blocks: memory that is new takes longer than the arithmetic, and a large one leaves
            # the cache between two steps.
            for each in slices(part.stop, size, part.start):
                block, values = flat[each], given[each]
                block.copy_(drawn[: len(block)].uniform_(-0.5, 0.5, generator=generator))
                block.add_(values.sign(), alpha=shared).mul_(sqrt(0.5 * 12.0) * self.scale)
                block.mul_(deviation(values, others[each])).nan_to_num_(0.0, 0.0, 0.0).add_(values)

        if flat.numel() <= WIDE_ELEMENTS or not exact.is_cpu:
            move(slice(0, flat.numel()), self.generator)
        else:
            self._move_wide(flat.numel(), move)
        return moved

    def _move_wide(self, elements: int, move: Callable[[slice, Any], None]) -> None:
        """Move the parts of a large tensor by several threads, each part by its own random numbers.

        Threads of torch would wait for one another in every step of every block.
        """
        torch = self.torch
        seed = int(torch.randint(1 << 62, (), generator=self.generator))

        def move_part(part: slice) -> None:
            with torch.no_grad(), threads_of(torch, 1):
                move(part, torch.Generator().manual_seed(seed + part.start))

        run_wide(move_part, slices(elements, WIDE_ELEMENTS))

    def rounded(self, exact: Tensor, times: float = 1.0) -> Tensor:
        """Return `exact` after `times` units of relative error."""
        return self.moved(exact, lambda values, _: values.abs().mul_(self.unit * times))

    def stored(self, exact: Tensor, dtype: str) -> Tensor:
        """Return `exact` after it was stored in 16 bits; other dtypes leave it alone."""
        if dtype not in STORED:
            return exact
        return self.moved(exact, lambda values, _: values.abs().mul_(STORED[dtype]))

    def exponential(self, exact: Tensor, x: Tensor) -> Tensor:
        """Return `exact`, such as exp(x), after |x| roundings more: exp(x) is 2^(x / ln 2)."""
        return self.moved(
            exact,
            lambda y, exponent: (
                exponent.abs().clamp_max_(100.0).add_(1.0).mul_(y.abs()).mul_(self.unit)
            ),
            x,
        )

    def absolute(self, exact: Tensor, x: Tensor, least: float) -> Tensor:
        """Return `exact`, a function of `x`, after a rounding of it and one as large as `x` is.

        The latter is `least` units at the least.
        """
        return self.moved(
            exact,
            lambda y, argument: argument.abs().clamp_min_(least).add_(y.abs()).mul_(self.unit),
            x,
        )

    def added(self, total: Tensor, squares: Tensor, terms: float) -> Tensor:
        """Return the sum `total` of `terms` terms, whose squares add up to `squares`."""
        unit = self.unit * sqrt(1.0 + terms / 3.0)
        return self.moved(
            total,
            lambda sums, squared: (sums * sums).add_(squared.clamp_min(0.0)).sqrt_().mul_(unit),
            squares,
        )

    def contracted(self, name: str, total: Tensor, squares: Tensor, terms: float) -> Tensor:
        """Return a sum of products, whose operands may have been rounded to TF32 before."""
        result = self.added(total, squares, terms)
        if name not in self.tf32:
            return result
        return self.moved(
            result,
            lambda _, squared: squared.clamp_min(0.0).mul_(2.0).sqrt_().mul_(TF32),
            squares,
        )

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
