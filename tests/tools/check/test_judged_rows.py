"""Large timed shapes, of which the right results of some rows stand for all."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.config.settings import Settings
from kopt.kernels.oracle import load_oracle
from kopt.kernels.problem import Problem
from kopt.tools.check import judged_rows
from kopt.tools.check.case_data import CaseData, CaseKey, make_case_data
from kopt.tools.check.cases import InputCase, Run
from kopt.tools.check.judge import judge
from kopt.tools.check.judged_rows import FEWEST_ROWS, judged_count
from kopt.tools.check.mismatch import make_mismatch
from kopt.tools.check.oracle_cache import open_cache
from kopt.tools.check.oracle_memory import affordable_jobs
from support.tiny_problem import tiny_problem

ROWS, COLUMNS, POISON = 512, 64, 0xFF


@pytest.fixture
def problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Problem:
    """Return a problem with one timed shape, of which some rows are judged."""
    monkeypatch.setattr(judged_rows, "ALL_ELEMENTS", 1 << 12)
    found = tiny_problem(tmp_path)
    with (found.folder / "oracle.py").open("a") as oracle:
        oracle.write("\n\ndef computed_values(workload):\n    return workload.axes['B']\n")
    axes = {"B": ROWS, "H": COLUMNS, "HB": COLUMNS // 16}
    large = found.workloads[0].model_copy(update={"name": "official", "axes": axes, "use": "time"})
    return found.model_copy(update={"workloads": (large,)})


@pytest.fixture
def data(problem: Problem) -> CaseData:
    return _drawn(problem)


def _drawn(problem: Problem) -> CaseData:
    return make_case_data(CaseKey(problem, problem.workloads[0], 1, "normal"))


def _right(problem: Problem, data: CaseData) -> npt.NDArray[Any]:
    """Return the right output, all rows of it."""
    expected = load_oracle(problem).expected(data.inputs, {"scale": 2.0})
    return np.array(expected["out"].rounded)


def _found(data: CaseData, out: npt.NDArray[Any]) -> str | None:
    finding = judge(data, {"out": out}, POISON).finding
    return None if finding is None else finding.gate


def _judged(data: CaseData) -> npt.NDArray[np.int64]:
    assert data.judged is not None
    return data.judged.rows


def test_the_oracle_is_asked_for_the_judged_rows_alone(problem: Problem, data: CaseData) -> None:
    count = judged_count(problem, problem.workloads[0])
    assert count is not None and FEWEST_ROWS <= count < ROWS
    assert data.inputs["x"].shape == (ROWS, COLUMNS)
    assert data.references["out"].shape == (count, COLUMNS)


def test_a_right_kernel_passes(problem: Problem, data: CaseData) -> None:
    assert _found(data, _right(problem, data)) is None


@pytest.mark.parametrize("row", [0, ROWS - 1])
def test_the_first_and_the_last_row_are_always_judged(problem: Problem, row: int) -> None:
    for _ in range(8):
        data = _drawn(problem)
        wrong = _right(problem, data)
        wrong[row, 3] += 1
        assert _found(data, wrong) is not None


def test_other_rows_are_judged_each_time(problem: Problem) -> None:
    first, second = (_judged(_drawn(problem)) for _ in range(2))
    assert len(np.unique(first)) == len(first)
    assert not np.array_equal(first, second)


def test_a_kernel_that_leaves_out_every_eighth_row_is_refused(problem: Problem) -> None:
    data = _drawn(problem)
    wrong = _right(problem, data)
    wrong[3::8] = 0
    assert _found(data, wrong) is not None


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_refused_in_rows_that_are_not_judged(
    problem: Problem, data: CaseData, value: float
) -> None:
    wrong = _right(problem, data)
    row = int(np.setdiff1d(np.arange(ROWS), _judged(data))[-1])
    wrong[row, 5] = value
    finding = judge(data, {"out": wrong}, POISON).finding
    assert finding is not None and finding.gate == "finite"
    assert f"row {row}" in finding.note


def test_a_mismatch_names_the_row_of_the_whole_tensor(problem: Problem, data: CaseData) -> None:
    row = int(_judged(data)[4])
    wrong = _right(problem, data)
    wrong[row, 7] += 1
    finding = judge(data, {"out": wrong}, POISON).finding
    assert finding is not None
    case = InputCase(problem.workloads[0], 1, False, "normal", (Run(POISON, 0),))
    told = make_mismatch(finding, case)
    assert (told.row, told.column, told.index) == (row, 7, (row, 7))
    assert f"of {ROWS} rows that were judged" in told.pattern


def test_no_rows_are_kept_for_the_next_check(problem: Problem, tmp_path: Path) -> None:
    cache = open_cache(Settings(home=tmp_path / "home"))
    key = CaseKey(problem, problem.workloads[0], 1, "normal")
    first, second = (_judged(cache.load(key)) for _ in range(2))
    assert not np.array_equal(first, second)


def test_more_cases_fit_into_memory(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    held = 30 * ROWS * COLUMNS  # inputs and outputs of float32, twice, and half as much again
    monkeypatch.setattr("kopt.tools.check.oracle_memory.machine_memory_bytes", lambda: 2 * held)
    some = affordable_jobs(problem, problem.workloads, 8)
    monkeypatch.setattr(judged_rows, "ALL_ELEMENTS", 1 << 30)
    assert some > affordable_jobs(problem, problem.workloads, 8)


def _without_rows(problem: Problem) -> Problem:
    return problem.model_copy(update={"row_axis": None})


def _checked(problem: Problem) -> Problem:
    both = problem.workloads[0].model_copy(update={"use": "both"})
    return problem.model_copy(update={"workloads": (both,)})


def _in_place(problem: Problem) -> Problem:
    first, *others = problem.tensors
    changed = first.model_copy(update={"role": "inout"})
    return problem.model_copy(update={"tensors": (changed, *others)})


def _of_rows(problem: Problem) -> Problem:
    return problem.model_copy(update={"axes": {**problem.axes, "P": "2 * B"}})


def _for_all_rows_only(problem: Problem) -> Problem:
    path = problem.folder / "oracle.py"
    path.write_text(path.read_text().replace("def computed_values", "def other"))
    return problem


@pytest.mark.parametrize(
    "change", [_without_rows, _checked, _in_place, _of_rows, _for_all_rows_only]
)
def test_all_rows_are_judged_where_some_cannot_stand_for_them(
    problem: Problem, change: Callable[[Problem], Problem]
) -> None:
    changed = change(problem)
    assert judged_count(changed, changed.workloads[0]) is None


def test_small_shapes_are_judged_whole(problem: Problem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged_rows, "ALL_ELEMENTS", 1 << 30)
    assert _drawn(problem).judged is None
