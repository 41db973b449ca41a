"""Statistics of a study: bootstrap intervals over its grid of runs, and the cost of a target.

Runs of one repeat share a knowledge base and runs of one kernel share the kernel, so that runs
are not drawn one by one: whole kernels and whole repeats are. A run on its way to a target speed
ends in one of three ways: it reached the target at some cost; its budget cut it off before, so that
its cost is censored; or it ended by itself without, and never would have.
"""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf
from random import Random
from typing import Literal, TypeVar

DRAWS = 2000
"""Draws of one interval: the ends of a 95 % interval stand on 50 draws each."""
_TAIL = 0.025

Place = tuple[str, int]
"""Kernel and repeat."""
_T = TypeVar("_T", bound=Hashable)


@dataclass(frozen=True)
class RunGrid:
    """The kernels and repeats that were run; a place may stand in a drawn grid several times."""

    kernels: tuple[str, ...]
    repeats: tuple[int, ...]

    @property
    def places(self) -> tuple[Place, ...]:
        """Every kernel in every repeat."""
        return tuple((kernel, repeat) for kernel in self.kernels for repeat in self.repeats)

    @property
    def has_spread(self) -> bool:
        """Whether there is anything to draw from: one run says nothing of another."""
        return len(self.kernels) > 1 or len(self.repeats) > 1


def interval_of(
    figure: Callable[[Sequence[Place]], float | None], grid: RunGrid, seed: int, draws: int = DRAWS
) -> tuple[float, float] | None:
    """Return the 95 % interval of `figure` over grids drawn from `grid`.

    Figures, which may be infinite, or None where undefined, see the same draws with the same seed
    and grid.

    Returns:
        The percentiles 2.5 and 97.5, without interpolation so that an infinite figure stays one;
        None without spread, and where some draw leaves the figure undefined.

    Source:
        Owen, "The pigeonhole bootstrap", Annals of Applied Statistics 1(2), 2007, for crossed
        random effects. Of n kernels, or repeats, n - 1 are drawn: with all n the variance of few
        would be too small by (n - 1) / n (Rao, Wu, "Resampling inference with complex survey
        data", Journal of the American Statistical Association 83, 1988). What the intervals hold
        is measured by benchmarks/study_coverage.py.
    """
    if not grid.has_spread:
        return None
    drawn = [figure(one.places) for one in _drawn(grid, seed, draws)]
    values = sorted(value for value in drawn if value is not None)
    if len(values) < draws:
        return None
    last = draws - 1
    return values[floor(_TAIL * last)], values[ceil((1 - _TAIL) * last)]


def _drawn(grid: RunGrid, seed: int, draws: int) -> Iterator[RunGrid]:
    random = Random(seed)  # the same on every machine
    for _ in range(draws):
        yield RunGrid(_again(grid.kernels, random), _again(grid.repeats, random))


def _again(items: Sequence[_T], random: Random) -> tuple[_T, ...]:
    count = max(1, len(items) - 1)
    return tuple(items[random.randrange(len(items))] for _ in range(count))


Ending = Literal["reached", "cut", "never"]
_HALF = 0.5 + 1e-9  # products of fractions miss 1/2 by some 1e-16


@dataclass(frozen=True)
class Reach:
    """One run on its way to the target."""

    cost: float
    """Spent when the target was reached, else in the whole run."""
    ending: Ending


def cost_per_success(reaches: Sequence[Reach]) -> float:
    """Return the cost of all runs, up to the target or their end, per run that reached it.

    What failures cost is part of it: it is the expected cost if one runs again until the target
    is reached. Infinite where no run reached it.

    Source:
        Hansen, Auger, Ros, Mersmann, Tušar, Brockhoff, "COCO: a platform for comparing continuous
        optimizers in a black-box setting", Optimization Methods and Software 36(1), 2021:
        the expected runtime (ERT).
    """
    successes = sum(one.ending == "reached" for one in reaches)
    return sum(one.cost for one in reaches) / successes if successes else inf


def median_cost(reaches: Sequence[Reach]) -> float:
    """Return the cost within which half of the runs reach the target; infinite where fewer do.

    A censored run counts as one under way up to its cost and then no more; one that never reaches
    the target stays under way for ever.

    Source:
        Kaplan, Meier, "Nonparametric estimation from incomplete observations", Journal of the
        American Statistical Association 53, 1958; runs that never reach it as competing events
        stay at risk in Fine, Gray, ibid. 94, 1999.
    """
    under_way = 1.0
    for cost in sorted({one.cost for one in reaches if one.ending == "reached"}):
        at_risk = sum(one.ending == "never" or one.cost >= cost for one in reaches)
        arrived = sum(one.ending == "reached" and one.cost == cost for one in reaches)
        under_way *= 1.0 - arrived / at_risk
        if under_way <= _HALF:
            return cost
    return inf
