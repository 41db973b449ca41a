"""Figures of a suite over its tasks, each with a 95 % bootstrap interval.

Shares are of all tasks: one that is not valid, or has no time, is in the denominator and never in
the numerator. Means are over the tasks that have a speed. A figure of nothing is None, never 0.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor

import numpy as np
import numpy.typing as npt

from kopt.kernels.record import Record

DRAWS = 2000
_TAIL = 0.025

Numbers = npt.NDArray[np.float64]
Rows = Numbers
"""One drawn suite a row; NaN for a task without the number."""


class ScoreFigure(Record):
    """A number with what is known of its uncertainty."""

    value: float | None
    """None: unavailable."""
    interval: tuple[float, float] | None
    """95 %, by drawing tasks anew; None of a single task, and where a draw leaves it undefined."""


UNAVAILABLE = ScoreFigure(value=None, interval=None)


def share(rows: Rows) -> Numbers:
    """Return the mean of each row, tasks without a number being 0."""
    filled: Numbers = np.nan_to_num(rows, nan=0.0)
    means: Numbers = filled.mean(axis=1)
    return means


def mean(rows: Rows) -> Numbers:
    """Return the mean of each row over the tasks that have the number; NaN where none has."""
    known = ~np.isnan(rows)
    counts = known.sum(axis=1)
    sums = np.where(known, rows, 0.0).sum(axis=1)
    found: Numbers = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    return found


def geomean(rows: Rows) -> Numbers:
    """Return the geometric mean of each row over the tasks that have the number."""
    found: Numbers = np.exp(mean(np.log(rows)))
    return found


def median(rows: Rows) -> Numbers:
    """Return the median of each row over the tasks that have the number."""
    ordered = np.sort(rows, axis=1)  # NaN last
    counts = (~np.isnan(rows)).sum(axis=1)
    at = np.arange(len(rows))
    low = ordered[at, np.maximum(counts - 1, 0) // 2]
    high = ordered[at, np.minimum(counts // 2, rows.shape[1] - 1)]
    found: Numbers = np.where(counts > 0, (low + high) / 2.0, np.nan)
    return found


@dataclass(frozen=True)
class Bootstrap:
    """Draws of tasks that all figures share: with one seed and number of tasks the same ones."""

    tasks: int
    seed: int
    draws: int = DRAWS

    def figure(
        self, values: Sequence[float | None], statistic: Callable[[Rows], Numbers]
    ) -> ScoreFigure:
        """Return `statistic` of a number of each task, None where it has none.

        Source:
            Of n tasks n - 1 are drawn: with all n the variance of few would be too small by
            (n - 1) / n (Rao, Wu, "Resampling inference with complex survey data", Journal of the
            American Statistical Association 83, 1988).
        """
        if not values:
            return UNAVAILABLE
        row = np.array([np.nan if one is None else one for one in values], dtype=np.float64)
        value = float(statistic(row[np.newaxis, :])[0])
        if np.isnan(value):
            return UNAVAILABLE
        return ScoreFigure(value=value, interval=self._interval(row, statistic))

    def _interval(
        self, row: Numbers, statistic: Callable[[Rows], Numbers]
    ) -> tuple[float, float] | None:
        if self.tasks < 2:
            return None
        drawn = np.sort(statistic(row[self._places()]))
        if np.isnan(drawn[-1]):
            return None
        last = self.draws - 1
        return float(drawn[floor(_TAIL * last)]), float(drawn[ceil((1 - _TAIL) * last)])

    def _places(self) -> npt.NDArray[np.int64]:
        generator = np.random.default_rng(self.seed)
        return generator.integers(self.tasks, size=(self.draws, self.tasks - 1))
