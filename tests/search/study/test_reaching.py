"""The cost of a target that not every run reaches: cases whose answer is known."""

from math import inf

import pytest

from kopt.search.study.study_statistics import Reach, cost_per_success, median_cost

# Weeks of remission under 6-mercaptopurine, + censored: the example of Freireich et al., Blood 21,
# 1963, in most textbooks; its median is 23.
REMISSIONS = "6 6 6 6+ 7 9+ 10 10+ 11+ 13 16 17+ 19+ 20+ 22 23 25+ 32+ 32+ 34+ 35+"


def _reached(*costs: float) -> list[Reach]:
    return [Reach(cost, "reached") for cost in costs]


def test_median_of_the_textbook_example_is_23() -> None:
    runs = [
        Reach(float(word.rstrip("+")), "cut" if word.endswith("+") else "reached")
        for word in REMISSIONS.split()
    ]
    assert median_cost(runs) == 23.0


def test_median_of_runs_that_all_reach_it_is_theirs() -> None:
    assert median_cost(_reached(3, 1, 2)) == 2.0
    assert median_cost(_reached(4, 1, 3, 2)) == 2.0  # within it, half have reached the target


def test_run_that_was_cut_late_does_not_move_the_median_and_one_cut_early_tells_nothing() -> None:
    assert median_cost([*_reached(1, 2), Reach(9, "cut")]) == 2.0
    assert median_cost([*_reached(5, 7, 9), Reach(1, "cut")]) == median_cost(_reached(5, 7, 9))


def test_run_that_ended_by_itself_never_reaches_it_however_early_it_ended() -> None:
    assert median_cost([*_reached(5), Reach(1, "never")]) == 5.0
    assert median_cost([*_reached(5), Reach(1, "never"), Reach(1, "never")]) == inf


def test_nobody_reaching_it_costs_infinitely_much() -> None:
    runs = [Reach(5, "cut"), Reach(6, "never")]
    assert median_cost(runs) == cost_per_success(runs) == inf


def test_failures_are_part_of_what_a_success_costs() -> None:
    runs = [*_reached(10, 20), Reach(30, "cut"), Reach(40, "never")]
    assert cost_per_success(runs) == pytest.approx(50.0)


def test_cost_per_success_is_that_of_running_again_until_it_is_reached() -> None:
    # One in four runs succeeds at cost 8, the others end at 4: 3 failures before it, on average.
    runs = [*_reached(8), *(Reach(4, "never") for _ in range(3))]
    assert cost_per_success(runs) == pytest.approx(3 * 4 + 8)
