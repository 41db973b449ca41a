"""Scores against values computed by hand, at the edges first: nobody valid, one task, ties."""

from math import exp, log, sqrt

import pytest

from kopt.kernels.status import Status
from kopt.tools.suite.score import ScoredTask, Scoring, score_groups, score_tasks
from kopt.tools.suite.suite_score import fast_curve
from support.suite_results import scored

SPEEDS = {"a": 0.5, "b": 1.0, "c": 2.0, "d": 4.0, "e": None}


def test_figures_are_those_of_the_definitions() -> None:
    score = score_tasks(scored(SPEEDS), Scoring())
    assert (score.tasks, score.valid, score.timed) == (5, 4, 4)
    assert score.valid_rate.value == pytest.approx(4 / 5)
    assert score.geomean.value == pytest.approx(sqrt(2))  # (0.5 * 1 * 2 * 4) ** (1 / 4)
    assert score.mean.value == pytest.approx(7.5 / 4)
    assert score.median.value == pytest.approx(1.5)
    assert (score.minimum, score.maximum) == (0.5, 4.0)
    assert score.above_1x.value == pytest.approx(2 / 4)
    assert score.below_1x.value == pytest.approx(1 / 4)
    assert score.geomean_failures_1x.value == pytest.approx(4.0 ** (1 / 5))
    assert score.geomean_above_1x.value == pytest.approx(sqrt(8))
    assert score.median_above_1x.value == pytest.approx(3.0)


def test_a_speedup_of_exactly_p_is_not_faster_than_p() -> None:
    score = score_tasks(scored(SPEEDS), Scoring(thresholds=(0.5, 1.0, 2.0, 4.0)))
    assert [one.by_estimate.value for one in score.fast] == pytest.approx([3 / 5, 2 / 5, 1 / 5, 0])


def test_the_interval_must_clear_p_as_a_whole() -> None:
    score = score_tasks(scored({"a": 1.05, "b": 1.5, "c": None}), Scoring(thresholds=(1.0,)))
    (fast,) = score.fast
    assert fast.by_estimate.value == pytest.approx(2 / 3)
    assert fast.by_interval.value == pytest.approx(1 / 3)  # 0.945 does not, 1.35 does


def test_nobody_valid_is_a_score_of_zero_and_no_mean() -> None:
    score = score_tasks(scored({"a": None, "b": None}), Scoring())
    assert score.valid_rate.value == 0.0
    assert [one.by_estimate.value for one in score.fast] == [0.0, 0.0, 0.0]
    for figure in (score.geomean, score.mean, score.median, score.above_1x, score.below_1x):
        assert (figure.value, figure.interval) == (None, None)
    assert (score.minimum, score.maximum) == (None, None)
    assert score.geomean_failures_1x.value == pytest.approx(1.0)


def test_one_task_has_figures_without_intervals() -> None:
    score = score_tasks(scored({"a": 3.0}), Scoring())
    assert score.geomean.value == pytest.approx(3.0)
    assert (score.geomean.interval, score.valid_rate.interval) == (None, None)


def test_no_task_at_all_is_unavailable() -> None:
    score = score_tasks([], Scoring())
    assert (score.tasks, score.valid_rate.value, score.geomean.value) == (0, None, None)


def test_a_suite_without_measured_speeds_has_no_share_of_fast_ones() -> None:
    score = score_tasks(scored({"a": None, "b": None}), Scoring(has_speeds=False))
    assert score.valid_rate.value == 0.0
    assert {one.by_estimate.value for one in score.fast} == {None}
    assert score.geomean_failures_1x.value is None


def test_intervals_hold_the_value_and_come_again_with_the_seed() -> None:
    tasks = scored({str(n): exp(n / 20 - 0.5) for n in range(40)} | {"failed": None})
    once, again, other = (score_tasks(tasks, Scoring(seed=seed)) for seed in (7, 7, 8))
    assert once == again
    assert once.geomean.interval != other.geomean.interval
    for figure in (once.geomean, once.mean, once.median, once.valid_rate):
        assert figure.value is not None
        assert figure.interval is not None
        assert figure.interval[0] < figure.value < figure.interval[1]


def test_an_interval_is_as_wide_as_the_spread_of_tasks_makes_it() -> None:
    logs = [n / 100 - 0.5 for n in range(100)]  # a standard deviation of 0.29
    score = score_tasks(scored({str(n): exp(x) for n, x in enumerate(logs)}), Scoring())
    assert score.geomean.interval is not None
    half = (log(score.geomean.interval[1]) - log(score.geomean.interval[0])) / 2
    assert half == pytest.approx(1.96 * 0.2887 / sqrt(99), rel=0.1)


def test_a_figure_that_a_draw_leaves_undefined_has_no_interval() -> None:
    score = score_tasks(scored({"a": 2.0, "b": None, "c": None}), Scoring())
    assert score.geomean.value == pytest.approx(2.0)
    assert score.geomean.interval is None
    assert score.fast[0].by_estimate.interval == (0.0, 1.0)


def test_failures_count_zero_for_the_speed_of_light_and_the_rest_by_their_mean() -> None:
    tasks = [
        one.model_copy(update={"sol_score": sol})
        for one, sol in zip(scored({"a": 2.0, "b": 1.5, "c": None}), (0.9, None, None), strict=True)
    ]
    assert score_tasks(tasks, Scoring()).sol_score.value == pytest.approx(0.9 / 2)


def _marked(task: ScoredTask, mark: str) -> ScoredTask:
    return task.model_copy(update={"mark": mark, "why_marked": "it is constant"})


def test_groups_and_sound_tasks_have_scores_of_their_own() -> None:
    one = scored({"a": 2.0, "b": 0.5}, "level1")
    two = [*scored({"c": 8.0}, "level2"), _marked(scored({"d": 100.0}, "level2")[0], "degenerate")]
    scores = score_groups([*one, *two], Scoring())
    told = [(score.group, score.sound_only, score.tasks, score.maximum) for score in scores]
    assert told == [
        (None, False, 4, 100.0),
        (None, True, 3, 8.0),
        ("level1", False, 2, 2.0),
        ("level2", False, 2, 100.0),
        ("level2", True, 1, 8.0),
    ]


def test_a_suite_of_one_group_is_told_once() -> None:
    assert [one.group for one in score_groups(scored({"a": 2.0}), Scoring())] == [None]


def test_the_curve_falls_at_every_speedup_and_every_lower_end() -> None:
    curve = fast_curve(scored({"a": 2.0, "b": 1.0, "c": None, "d": 1.0}))
    assert [(one.p, one.by_estimate, one.by_interval) for one in curve] == [
        (0.9, 3 / 4, 3 / 4),
        (1.0, 3 / 4, 1 / 4),
        (1.8, 1 / 4, 1 / 4),
        (2.0, 1 / 4, 0.0),
    ]


def test_a_valid_task_without_a_time_is_valid_and_not_fast() -> None:
    untimed = ScoredTask(task="b", group="all", is_valid=True, status=Status.PASSED)
    score = score_tasks([*scored({"a": 2.0}), untimed], Scoring())
    assert (score.valid, score.timed) == (2, 1)
    assert score.fast[0].by_estimate.value == pytest.approx(1 / 2)
    assert score.geomean.value == pytest.approx(2.0)
