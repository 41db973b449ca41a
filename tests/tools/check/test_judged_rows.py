"""Large timed shapes, of which the right results of some rows stand for all."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.config.settings import Settings
from kopt.kernels.oracle import load_oracle
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status
from kopt.tools.check import judged_rows, oracle_cache
from kopt.tools.check.case_data import CaseData, CaseKey, make_case_data
from kopt.tools.check.cases import InputCase, Run
from kopt.tools.check.judge import judge
from kopt.tools.check.judged_rows import FEWEST_ROWS, judged_count
from kopt.tools.check.mismatch import make_diagnostic, make_mismatch
from kopt.tools.check.oracle_cache import open_cache
from kopt.tools.check.oracle_memory import affordable_jobs
from kopt.tools.check.run_case import JudgedRun, SharedCase, compare_poisons, execute_run
from kopt.tools.check.unwritten_gate import POISONS
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest, Program
from kopt.tools.facts.check_facts import element_words
from support.synthetic_check import CANDIDATE, NumpyDevice, plans_for
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


def _drawn(problem: Problem, seed: int = 1) -> CaseData:
    return make_case_data(CaseKey(problem, problem.workloads[0], seed, "normal"))


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
    for seed in range(8):
        data = _drawn(problem, seed)
        wrong = _right(problem, data)
        wrong[row, 3] += 1
        assert _found(data, wrong) is not None


def test_rows_follow_from_the_seed_alone(problem: Problem) -> None:
    first, again, other = (_judged(_drawn(problem, seed)) for seed in (1, 1, 2))
    assert len(np.unique(first)) == len(first)
    assert np.array_equal(first, again) and not np.array_equal(first, other)


def test_a_kernel_that_leaves_out_every_eighth_row_is_refused(problem: Problem) -> None:
    data = _drawn(problem)
    wrong = _right(problem, data)
    wrong[3::8] = 0
    assert _found(data, wrong) is not None


def _not_judged(data: CaseData) -> int:
    return int(np.setdiff1d(np.arange(ROWS), _judged(data))[-1])


def test_nan_is_refused_in_rows_that_are_not_judged(problem: Problem, data: CaseData) -> None:
    wrong, row = _right(problem, data), _not_judged(data)
    wrong[row, 5] = np.nan
    finding = judge(data, {"out": wrong}, POISON).finding
    assert finding is not None and finding.gate == "finite"
    told = make_mismatch(finding, _case(problem))
    assert (told.row, told.index, told.column, told.wrong_elements) == (row, None, None, None)
    assert element_words(told) == f"out has nan in row {row}"
    assert make_diagnostic(finding, np.zeros(0), _case(problem)).hint is None


def test_an_infinity_may_be_right_in_rows_that_are_not_judged(
    problem: Problem, data: CaseData
) -> None:
    out = _right(problem, data)
    out[_not_judged(data), 5] = -np.inf
    assert _found(data, out) is None


@dataclass
class _LeavesRowOut(NumpyDevice):
    """Computes all but two elements of a row."""

    row: int = 0

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        out = load_oracle(request.program.problem).expected(request.inputs, {"scale": 2.0})["out"]
        got = out.rounded.copy()
        got[self.row, 9:11].view(np.uint8)[:] = request.poison
        return ExecutionOutcome(Status.PASSED, outputs={"out": got})


@pytest.mark.parametrize("poisons", [POISONS, POISONS[::-1]])
def test_what_nobody_writes_is_refused_in_rows_that_are_not_judged(
    problem: Problem, data: CaseData, poisons: tuple[int, int]
) -> None:
    first, second = (Run(poison, 0) for poison in poisons)
    plan = plans_for(problem)["official"]
    case = replace(_case(problem), runs=(first, second))
    shared = SharedCase(Program(CANDIDATE, problem, plan), case, lambda: data)
    device = _LeavesRowOut(row=_not_judged(data))
    report = execute_run(shared, first, device)
    found: JudgedRun | None = report
    if report.status is Status.PASSED:  # the pattern of the first run is a number
        other = execute_run(shared, second, device)
        found = compare_poisons(shared, (first, report), (second, other))
    assert found is not None and found.status is Status.UNWRITTEN_OUTPUT
    assert found.mismatch is not None and found.mismatch.row == device.row


def test_a_mismatch_names_the_row_of_the_whole_tensor(problem: Problem, data: CaseData) -> None:
    row = int(_judged(data)[4])
    wrong = _right(problem, data)
    wrong[row, 7] += 1
    finding = judge(data, {"out": wrong}, POISON).finding
    assert finding is not None
    told = make_mismatch(finding, _case(problem))
    assert (told.row, told.column, told.index) == (row, 7, (row, 7))
    assert f"of {ROWS} rows that were judged" in told.pattern


def _case(problem: Problem) -> InputCase:
    return InputCase(problem.workloads[0], 1, False, "normal", (Run(POISON, 0),))


def test_a_kept_case_comes_back_with_its_rows(
    problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = open_cache(Settings(home=tmp_path / "home"))
    key = CaseKey(problem, problem.workloads[0], 1, "normal")
    made = cache.load(key)

    def made_again(key: CaseKey) -> CaseData:
        pytest.fail(f"{key.workload.name} was made again")

    monkeypatch.setattr(oracle_cache, "make_case_data", made_again)
    kept = cache.load(key)
    assert np.array_equal(_judged(kept), _judged(made)) and kept.judged is not None
    assert (kept.judged.total, kept.judged.places) == (ROWS, {"x": 0, "out": 0})
    right = _right(problem, kept)
    assert _found(kept, right) is None
    right[_judged(kept)[3], 1] += 1
    assert _found(kept, right) is not None


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
