"""The figures of an arm: averages, duels and costs of small studies whose answers are known."""

from math import log

import pytest

from kopt.search.study.figures import (
    Ground,
    duels,
    log_speedup_per_mtok,
    speed_figure,
    target_cost,
)
from kopt.search.study.study_statistics import RunGrid
from support.study_cases import outcome

KERNELS = ("a", "b")
GROUND = Ground(RunGrid(KERNELS, (0,)), seed=1, min_effect=0.02)


def test_speeds_are_averaged_as_ratios() -> None:
    figure = speed_figure({("a", 0): outcome(1.0), ("b", 0): outcome(4.0)}, GROUND)
    assert figure.value == pytest.approx(2.0)  # the arithmetic mean would claim 2.5
    assert figure.interval == pytest.approx((1.0, 4.0))


def test_run_without_a_time_is_in_no_average_and_one_without_a_winner_counts_with_its_start() -> (
    None
):
    without = {("a", 0): outcome(None), ("b", 0): outcome(2.0)}
    assert speed_figure(without, GROUND).value == pytest.approx(2.0)
    lost = {("a", 0): outcome(1.0, winner=None), ("b", 0): outcome(4.0)}
    assert speed_figure(lost, GROUND).value == pytest.approx(2.0)


def test_ratio_pairs_the_same_kernel_and_repeat_so_that_kernels_do_not_spread_it() -> None:
    arm = {("a", 0): outcome(1.0), ("b", 0): outcome(8.0)}
    reference = {("a", 0): outcome(2.0), ("b", 0): outcome(16.0)}
    figure = speed_figure(arm, GROUND, reference)
    assert figure.value == pytest.approx(0.5)
    assert figure.interval == pytest.approx((0.5, 0.5))


def test_duel_is_undecided_where_intervals_overlap_or_the_change_is_too_small() -> None:
    reference = {
        ("a", 0): outcome(1.00, interval=(0.99, 1.01)),
        ("b", 0): outcome(1.00, interval=(0.90, 1.10)),
        ("c", 0): outcome(1.00),
        ("d", 0): outcome(1.00),
        ("e", 0): outcome(None),
    }
    arm = {
        ("a", 0): outcome(1.10, interval=(1.09, 1.11)),
        ("b", 0): outcome(1.15, interval=(1.05, 1.25)),
        ("c", 0): outcome(1.015),
        ("d", 0): outcome(0.90),
        ("e", 0): outcome(3.0),
    }
    ground = Ground(RunGrid(tuple("abcde"), (0,)), 1, 0.02)
    found = duels(arm, reference, ground)
    assert (found.wins, found.losses, found.inconclusive) == (1, 1, 3)
    back = duels(reference, arm, ground)
    assert (back.wins, back.losses, back.inconclusive) == (1, 1, 3)


def test_target_costs_count_failures_and_compare_with_the_reference() -> None:
    arm = {("a", 0): outcome(2.0, 30), ("b", 0): outcome(1.1, 10, "never")}
    reference = {("a", 0): outcome(2.0, 10), ("b", 0): outcome(2.0, 10)}
    cost = target_cost("candidates", arm, reference, GROUND)
    assert cost.per_success.value == pytest.approx(40.0)
    assert cost.ratio is not None and cost.ratio.value == pytest.approx(4.0)
    assert cost.median.value == 30.0
    tokens = target_cost("tokens", arm, reference, GROUND)
    assert tokens.per_success.value == pytest.approx(40_000.0)


def test_draw_in_which_nobody_reaches_it_has_no_upper_bound() -> None:
    arm = {("a", 0): outcome(2.0, 30), ("b", 0): outcome(1.1, 10, "never")}
    figure = target_cost("candidates", arm, None, GROUND).per_success
    assert figure.interval == (30.0, None)


def test_arm_that_never_reaches_it_has_no_cost_and_none_is_compared_with_it() -> None:
    never = {("a", 0): outcome(1.0, 5, "never"), ("b", 0): outcome(1.0, 5, "cut")}
    always = {("a", 0): outcome(2.0), ("b", 0): outcome(2.0)}
    assert target_cost("usd", never, None, GROUND).per_success.value is None
    ratio = target_cost("usd", always, never, GROUND).ratio
    assert ratio is not None and ratio.value is None and ratio.interval is None


def test_improvement_per_token_is_of_all_tokens_those_of_failures_too() -> None:
    runs = {("a", 0): outcome(4.0, 500), ("b", 0): outcome(1.0, 500, winner=None)}
    assert log_speedup_per_mtok(runs) == pytest.approx(log(4.0))
    assert log_speedup_per_mtok({("a", 0): outcome(4.0, 0)}) is None
