"""Medians, their intervals, and summaries of latencies."""

import numpy as np
import pytest

from kopt.tools.bench.intervals import median_interval, summarize_latency


def _samples(pairs: int, seed: int, center: float = 0.0) -> list[float]:
    found: list[float] = np.random.default_rng(seed).normal(center, 0.01, pairs).tolist()
    return found


@pytest.mark.parametrize("pairs", [20, 22, 100, 102, 800])
def test_the_interval_is_that_of_resampling_with_replacement(pairs: int) -> None:
    samples = _samples(pairs, 3)
    interval = median_interval(samples, 0)
    means = np.asarray(samples).reshape(-1, 2).mean(axis=1)
    rng = np.random.default_rng(1)
    medians = np.median(means[rng.integers(means.size, size=(20000, means.size))], axis=1)
    low, high = np.quantile(medians, (0.025, 0.975))
    assert interval.median == pytest.approx(float(np.median(means)))
    assert interval.low == pytest.approx(float(low), abs=0.1 * interval.half_width)
    assert interval.high == pytest.approx(float(high), abs=0.1 * interval.half_width)


def test_nineteen_of_twenty_intervals_hold_the_true_median() -> None:
    intervals = [median_interval(_samples(100, seed, 0.005), seed) for seed in range(1000)]
    covered = sum(interval.low <= 0.005 <= interval.high for interval in intervals)
    assert 930 <= covered <= 970


def test_an_effect_of_the_place_in_a_pair_moves_nothing() -> None:
    samples = np.asarray(_samples(200, 5))
    placed = samples + np.tile((0.02, -0.02), 100)  # of two pairs one has the candidate first
    found, wanted = (median_interval(values.tolist(), 0) for values in (placed, samples))
    assert (found.median, found.low, found.high) == pytest.approx(
        (wanted.median, wanted.low, wanted.high)
    )


def test_a_few_outliers_hardly_move_the_interval() -> None:
    samples = _samples(200, 5)
    spoiled = [value + (0.5 if place % 50 == 0 else 0.0) for place, value in enumerate(samples)]
    clean, dirty = median_interval(samples, 0), median_interval(spoiled, 0)
    assert abs(dirty.median - clean.median) < clean.half_width / 2
    assert dirty.half_width < 1.5 * clean.half_width


def test_equal_samples_give_an_interval_of_no_width() -> None:
    interval = median_interval([0.01] * 100, 0)
    assert (interval.median, interval.low, interval.high) == pytest.approx((0.01, 0.01, 0.01))


def test_one_double_pair_is_its_own_interval() -> None:
    interval = median_interval([0.01, 0.03], 0)
    assert (interval.median, interval.low, interval.high) == pytest.approx((0.02, 0.02, 0.02))


def test_the_same_seed_gives_the_same_interval() -> None:
    samples = _samples(100, 1)
    assert median_interval(samples, 4) == median_interval(samples, 4)


def test_a_latency_is_summarized_by_median_and_spread() -> None:
    latency = summarize_latency([float(value) for value in range(1, 12)])
    assert (latency.median_us, latency.p10_us, latency.p90_us) == (6.0, 2.0, 10.0)
    assert (latency.min_us, latency.replays) == (1.0, 11)
