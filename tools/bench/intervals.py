"""Numbers made of samples: the median log ratio with its interval, and the summary of a latency.

The unit of a comparison is the double pair (`pair_order.py`): the mean of its two log ratios, in
which order and steady drift cancel. The interval is the percentile bootstrap of the median over
double pairs. docs/benchmarking.md has the simulation behind both choices.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from kopt.kernels.bench_result import Latency

_RESAMPLES = 8192
_OUTSIDE = 0.05  # of a 95 % interval, both sides together


@dataclass(frozen=True)
class Interval:
    """A median log ratio and its 95 % interval."""

    median: float
    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half of the interval's width."""
        return (self.high - self.low) / 2


def median_interval(log_ratios: Sequence[float], seed: int) -> Interval:
    """Return the median over double pairs, with its 95 % percentile bootstrap interval.

    A resample's median is drawn directly: the k-th smallest of n uniform variates is beta(k, n + 1
    - k), and the same place of the sorted samples is the k-th smallest of a resample. That is the
    distribution of drawing n samples with replacement, at a cost that does not grow with n.

    Args:
        log_ratios: ln(baseline / candidate) of pairs in order measured; an even number, at least
            two: places 2 i and 2 i + 1 are one double pair.
        seed: Decides the resamples.

    Source:
        Efron, "Bootstrap methods", Annals of Statistics 7(1), 1979; order statistics of uniform
        variates: David and Nagaraja, "Order Statistics", 3rd edition, section 2.3.
    """
    means = np.sort(np.asarray(log_ratios, dtype=np.float64).reshape(-1, 2).mean(axis=1))
    count = means.size
    rng = np.random.default_rng(seed)
    lower, upper = (count - 1) // 2 + 1, count // 2 + 1  # the middle ones, counted from 1
    at_upper = rng.beta(upper, count + 1 - upper, _RESAMPLES)
    # Given the upper one, the lower is the largest of `lower` variates below it.
    at_lower = at_upper if lower == upper else at_upper * rng.random(_RESAMPLES) ** (1 / lower)
    medians = (_picked(means, at_lower) + _picked(means, at_upper)) / 2
    low, high = np.quantile(medians, (_OUTSIDE / 2, 1 - _OUTSIDE / 2))
    return Interval(float(np.median(means)), float(low), float(high))


def _picked(
    ascending: npt.NDArray[np.float64], uniform: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    places = np.minimum((uniform * ascending.size).astype(np.int64), ascending.size - 1)
    return ascending[places]


def summarize_latency(us_per_call: Sequence[float]) -> Latency:
    """Return the summary of measured times of one side; at least one time."""
    times = np.asarray(us_per_call, dtype=np.float64)
    p10, median, p90 = np.quantile(times, (0.1, 0.5, 0.9))
    return Latency(
        median_us=float(median),
        p10_us=float(p10),
        p90_us=float(p90),
        min_us=float(times.min()),
        replays=times.size,
    )
