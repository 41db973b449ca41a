"""The arithmetic of a belief, against numbers computed by hand."""

from math import sqrt
from random import Random
from statistics import fmean

import pytest

from kopt.search.knowledge.policy.belief import Belief, positive_part, t_quantile
from kopt.search.knowledge.records import Evidence


def test_evidence_moves_mean_weight_and_variance() -> None:
    evidence = Evidence(tries=3, gained=2, within_noise=1, weight=1.5, mean=0.15, m2=0.01)
    belief = Belief().after(evidence)
    assert (belief.mean, belief.weight, belief.alpha) == pytest.approx((0.1, 2.0, 2.75))
    # 2 * 0.1^2 + (0.01 + 0.2^2 * 0.5 * 1.5 / 2.0) / 2
    assert belief.beta == pytest.approx(0.0325)
    assert (belief.effects, belief.nulls) == (2.2, 1.8)


def test_half_of_other_evidence_counts_as_evidence_of_half_the_size() -> None:
    evidence = Evidence(tries=6, gained=4, within_noise=2, weight=3.0, mean=0.1875, m2=0.03125)
    belief = Belief().after(evidence, share=0.5, factor=0.8)
    same = Belief().after(
        Evidence(tries=3, gained=2, within_noise=1, weight=1.5, mean=0.15, m2=0.01)
    )
    assert (belief.mean, belief.weight, belief.beta) == pytest.approx(
        (same.mean, same.weight, same.beta)
    )
    assert (belief.effects, belief.nulls) == (same.effects, same.nulls)


def test_two_bodies_of_evidence_are_as_good_as_one() -> None:
    first = Evidence(tries=1, gained=1, weight=1.0, mean=0.2)
    second = Evidence(tries=1, lost=1, weight=1.0, mean=-0.2)
    both = Evidence(tries=2, gained=1, lost=1, weight=2.0, mean=0.0, m2=0.08)
    stepwise, at_once = Belief().after(first).after(second), Belief().after(both)
    assert (stepwise.mean, stepwise.beta) == pytest.approx((at_once.mean, at_once.beta))


def test_of_what_nothing_is_known_seven_of_ten_pass_and_a_fifth_of_them_matters() -> None:
    assert Belief().works == pytest.approx(0.7 * 0.2)


def test_failures_lower_the_chance_to_pass_and_nothing_else() -> None:
    belief = Belief().after_checks(Evidence(tries=4, failed=3))
    assert belief.works == pytest.approx(0.4 * 0.2)
    assert (belief.mean, belief.interval) == (Belief().mean, Belief().interval)


def test_tries_within_noise_lower_the_chance_of_an_effect_and_no_gain() -> None:
    belief = Belief().after(Evidence(tries=4, within_noise=4))
    assert belief.works == pytest.approx(0.7 * 0.04)
    assert (belief.mean, belief.weight, belief.beta) == (-0.05, 0.5, Belief().beta)


def test_an_expected_gain_counts_as_so_many_tries_with_an_effect() -> None:
    belief = Belief().expecting(0.15, 1.5)
    assert (belief.mean, belief.weight, belief.effects) == pytest.approx((0.1, 2.0, 1.7))
    assert belief.beta == Belief().beta


def test_the_interval_is_of_the_next_gain() -> None:
    low, high = Belief(mean=0.1).interval
    # Student's t with 4 degrees of freedom, scale sqrt(0.02 * 1.5 / (2 * 0.5))
    assert (low + high) / 2 == pytest.approx(0.1)
    assert (high - low) / 2 == pytest.approx(2.776 * 0.17321, rel=3e-3)


def test_the_deviation_is_of_the_mean() -> None:
    assert Belief().sd == pytest.approx(sqrt(0.02 / 0.5))
    assert Belief().after(Evidence(tries=9, gained=9, weight=9.0)).sd < 0.04


@pytest.mark.parametrize(
    ("freedom", "quantile"), [(4, 2.776), (5, 2.571), (10, 2.228), (30, 2.042), (1000, 1.962)]
)
def test_quantiles_are_those_of_the_tables(freedom: float, quantile: float) -> None:
    assert t_quantile(freedom) == pytest.approx(quantile, rel=3e-3)


@pytest.mark.parametrize(
    ("mean", "sd", "expected"),
    [(0.0, 1.0, 0.39894), (1.0, 1e-6, 1.0), (-1.0, 1e-6, 0.0), (1.0, 1.0, 1.08332)],
)
def test_only_gains_count_for_the_value(mean: float, sd: float, expected: float) -> None:
    assert positive_part(mean, sd) == pytest.approx(expected, abs=1e-5)


def test_drawn_values_are_on_average_the_chance_times_the_expected_gain() -> None:
    belief = Belief().after(Evidence(tries=2, gained=1, within_noise=1, weight=1.0, mean=0.1))
    rng = Random(1)
    drawn = fmean(belief.drawn_value(rng) for _ in range(20_000))
    spread = sqrt(belief.beta / belief.alpha * (1 + 1 / belief.weight))
    assert drawn == pytest.approx(belief.works * positive_part(belief.mean, spread), rel=0.02)


def test_what_always_lost_is_drawn_below_zero() -> None:
    lost = Evidence(tries=40, lost=40, weight=40.0, mean=-0.2)
    belief = Belief().after(lost)
    assert all(belief.drawn_gain(Random(seed)) < 0 for seed in range(20))
