"""A task's speed over one baseline: which comparison counts, several workloads, speed of light."""

import pytest

from kopt.kernels.status import Status
from kopt.tools.suite.sol_score import sol_score
from kopt.tools.suite.speeds import task_speed
from support.suite_results import over, task_result, timed, unlike

EAGER = over("torch_eager", 2.0, (1.9, 2.1), 20.0)
COMPILE = over("torch_compile", 1.2, (1.1, 1.3), 12.0)
REFERENCE = over("reference", 6.0, (5.9, 6.1), 60.0)


def test_each_baseline_is_found_by_its_name_and_best_is_the_fastest_library() -> None:
    result = task_result("a", timed(EAGER, COMPILE, REFERENCE))
    speeds = {
        name: None if (speed := task_speed(result, name)) is None else speed.speedup
        for name in ("eager", "compile", "compile_max", "best", "reference")
    }
    assert speeds == {
        "eager": 2.0,
        "compile": 1.2,
        "compile_max": None,
        "best": 1.2,
        "reference": 6.0,
    }


def test_without_a_library_there_is_no_best_baseline() -> None:
    assert task_speed(task_result("a", timed(REFERENCE)), "best") is None


def test_several_workloads_count_by_their_geometric_mean() -> None:
    first = timed(over("torch_eager", 2.0, (1.8, 2.2)), workload="small")
    second = timed(over("torch_eager", 8.0, (5.0, 9.0)), workload="large")
    speed = task_speed(task_result("a", first, second), "eager")
    assert speed is not None
    assert speed.speedup == pytest.approx(4.0)
    assert speed.proven == pytest.approx(3.0)


def test_a_workload_without_the_baseline_leaves_the_task_without_a_speed() -> None:
    result = task_result("a", timed(EAGER), timed(REFERENCE, workload="large"))
    assert task_speed(result, "eager") is None


def test_what_is_not_valid_has_no_speed() -> None:
    assert task_speed(task_result("a", timed(EAGER), status=Status.DATA_RACE), "eager") is None
    cheated = timed(EAGER).model_copy(update={"status": Status.REWARD_HACK})
    assert task_speed(task_result("a", cheated), "eager") is None


def test_an_impossible_time_is_no_speed() -> None:
    hidden = EAGER.model_copy(update={"speedup": None, "interval": None})
    assert task_speed(task_result("a", timed(hidden)), "eager") is None


def test_a_baseline_that_is_not_like_for_like_counts_and_says_so() -> None:
    speed = task_speed(task_result("a", timed(unlike("torch_eager", 3.0))), "eager")
    assert speed is not None
    assert (speed.speedup, speed.is_like) == (3.0, False)


def test_the_speed_of_one_workload_is_not_rounded_past_a_threshold() -> None:
    for p in (1.1, 1.5, 3.0):
        speed = task_speed(task_result("a", timed(over("torch_eager", p, (p, p)))), "eager")
        assert speed is not None
        assert (speed.speedup, speed.proven) == (p, p)


@pytest.mark.parametrize(
    ("time_us", "score"),
    [(20.0, 0.5), (5.0, 1.0), (35.0, 1 / 3), (4.9, 1.0)],
    ids=["baseline", "floor", "slower", "below the floor by noise"],
)
def test_speed_of_light_is_one_half_at_the_baseline(time_us: float, score: float) -> None:
    assert sol_score(time_us, 20.0, 5.0) == pytest.approx(score)


def test_a_baseline_at_the_floor_leaves_no_speed_of_light_score() -> None:
    assert sol_score(6.0, 5.0, 5.0) is None
