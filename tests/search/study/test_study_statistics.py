"""Intervals by drawing kernels and repeats anew: cases whose answer is known.

The cost of a target that not every run reaches: cases whose answer is known.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf, sqrt
from random import Random
from statistics import fmean

import pytest

from kopt.search.study.study_statistics import (
    Place,
    Reach,
    RunGrid,
    cost_per_success,
    interval_of,
    median_cost,
)


def _mean_of(values: Mapping[Place, float]) -> Callable[[Sequence[Place]], float]:
    return lambda places: fmean(values[place] for place in places)


def test_two_kernels_range_from_one_to_the_other() -> None:
    values = {("a", 0): 1.0, ("b", 0): 4.0}
    # One of the two is drawn, either as likely.
    interval = interval_of(_mean_of(values), RunGrid(("a", "b"), (0,)), 1)
    assert interval == (1.0, 4.0)


def test_equal_runs_have_an_interval_of_no_width() -> None:
    grid = RunGrid(("a", "b", "c"), (0, 1))
    assert interval_of(lambda places: 2.0, grid, 1) == (2.0, 2.0)


def test_single_run_has_no_interval() -> None:
    assert interval_of(lambda places: 1.0, RunGrid(("a",), (0,)), 1) is None


def test_figure_that_a_draw_leaves_undefined_has_no_interval() -> None:
    grid = RunGrid(("a", "b"), (0,))
    assert interval_of(lambda ps: None if ("a", 0) not in ps else 1.0, grid, 1) is None


def test_infinite_figure_of_some_draws_makes_the_interval_infinite_above() -> None:
    grid = RunGrid(("a", "b"), (0,))
    assert interval_of(lambda ps: 3.0 if ("a", 0) in ps else inf, grid, 1) == (3.0, inf)


def test_repeats_of_one_kernel_spread_as_the_mean_of_independent_runs_does() -> None:
    random = Random(5)
    count = 40
    values = {("a", repeat): random.gauss(0.0, 1.0) for repeat in range(count)}
    grid = RunGrid(("a",), tuple(range(count)))
    interval = interval_of(_mean_of(values), grid, 3)
    assert interval is not None
    center = fmean(values.values())
    spread = sqrt(fmean((v - center) ** 2 for v in values.values()) / (count - 1))
    assert (interval[1] - interval[0]) / 2 == pytest.approx(1.96 * spread, rel=0.06)


def test_kernels_that_differ_widen_the_interval_however_often_each_is_repeated() -> None:
    # With runs drawn one by one, 30 equal repeats would make the interval of 3 kernels narrow.
    values = {(kernel, repeat): float(ord(kernel)) for kernel in "abc" for repeat in range(30)}
    grid = RunGrid(tuple("abc"), tuple(range(30)))
    interval = interval_of(_mean_of(values), grid, 1)
    assert interval == (float(ord("a")), float(ord("c")))


def test_same_seed_draws_the_same() -> None:
    values = {(k, r): Random(f"{k}{r}").random() for k in "abcd" for r in range(3)}
    grid = RunGrid(tuple("abcd"), (0, 1, 2))

    def interval(seed: int) -> tuple[float, float] | None:
        return interval_of(_mean_of(values), grid, seed)

    assert interval(7) == interval(7) != interval(8)


def test_interval_covers_the_truth_in_most_studies_of_six_kernels_and_four_repeats() -> None:
    covered = 0
    for study in range(60):
        random = Random(study)
        kernels = {k: random.gauss(0.0, 0.5) for k in "abcdef"}
        repeats = {r: random.gauss(0.0, 0.2) for r in range(4)}
        values = {
            (k, r): of_k + of_r + random.gauss(0.0, 0.3)
            for k, of_k in kernels.items()
            for r, of_r in repeats.items()
        }
        grid = RunGrid(tuple(kernels), tuple(repeats))
        interval = interval_of(_mean_of(values), grid, study, 400)
        assert interval is not None
        covered += interval[0] <= 0.0 <= interval[1]
    assert covered >= 53  # 88 %: a percentile interval of few kernels is somewhat short of 95 %


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
