"""PyTorch's times by KernelBench and by kopt: which tasks are compared, and what is said."""

from pathlib import Path

import pytest
from kernelbench_times import Pair, eager_times, spread, summary

from kopt.tools.suite.results_folder import writing_results
from support.suite_results import GPU_SET, over, task_result, timed


def test_the_times_are_those_of_eager_and_of_no_other_baseline(tmp_path: Path) -> None:
    both = timed(over("torch_compile", 1.0, (1.0, 1.0)), over("torch_eager", 2.0, (1.9, 2.1), 3e3))
    with writing_results(tmp_path, GPU_SET) as folder:
        folder.write(task_result("a", both))
        folder.write(task_result("b", timed(over("reference", 1.0, (1.0, 1.0)))))
        assert eager_times(folder, ("a", "b", "never_run")) == {"a": 3.0}


@pytest.mark.parametrize(
    ("count", "chosen"), [(2, ["a", "c"]), (3, ["a", "b", "c"]), (4, [*"abcd"]), (9, [*"abcd"])]
)
def test_the_tasks_are_spread_over_all(count: int, chosen: list[str]) -> None:
    assert spread([*"abcd"], count) == chosen


def test_five_percent_longer_or_shorter_is_as_near_as_asked() -> None:
    pairs = [Pair("a", 1.0, 1.049), Pair("b", 2.0, 1.91), Pair("c", 1.0, 1.06), Pair("d", 1.0, 0.9)]
    assert summary(pairs) == "2 of 4 within 5 %"
    assert pairs[3].cells() == ("d", "1", "0.9", "-10.0")
