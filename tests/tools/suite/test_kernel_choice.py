"""Which workloads of a task are timed, and which are left to checks or to a GPU."""

import re
from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problem
from kopt.tools.suite.kernel_choice import timed_workloads
from kopt.tools.suite.suite_file import SuiteTask
from support.tiny_problem import tiny_problem, write_tiny_problem

SMALL, LARGE = "b8xh64", "b32xh256"


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    """Return a problem of two workloads."""
    return tiny_problem(tmp_path)


def _names(problem: Problem, *named: str, on_gpu: bool) -> list[str]:
    task = SuiteTask(name="scale_rows", workloads=named)
    return [one.name for one in timed_workloads(problem, task, on_gpu=on_gpu)]


def test_a_gpu_times_all_workloads_or_those_that_are_named(problem: Problem) -> None:
    assert _names(problem, on_gpu=True) == [SMALL, LARGE]
    assert _names(problem, LARGE, on_gpu=True) == [LARGE]


def test_on_sim_one_workload_is_estimated(problem: Problem) -> None:
    assert _names(problem, on_gpu=False) == [SMALL]
    assert _names(problem, LARGE, on_gpu=False) == [LARGE]


def test_what_a_workload_is_for_decides_where_it_is_timed(tmp_path: Path) -> None:
    folder = write_tiny_problem(tmp_path)
    text = (folder / "problem.yaml").read_text()
    for name, use in ((SMALL, "check"), (LARGE, "time")):
        text = re.sub(rf"({name}: {{axes: {{.*?}})}}", rf"\1, use: {use}}}", text)
    (folder / "problem.yaml").write_text(text)
    problem = load_problem(folder)
    assert _names(problem, on_gpu=True) == [LARGE]
    assert _names(problem, on_gpu=False) == [SMALL]
    assert _names(problem, LARGE, on_gpu=False) == [SMALL]  # sim runs no other
    with pytest.raises(ToolError, match="no workload for timing"):
        _names(problem, SMALL, on_gpu=True)
