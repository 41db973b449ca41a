"""Steps that are refused: what is said, and that nothing is left behind or changed."""

from pathlib import Path
from typing import Any

import pytest

from kopt.config.errors import ToolError
from kopt.kernels.families import FAMILIES
from kopt.search.records.budget import Budget
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.records.members import StepCandidate
from kopt.search.reports.run_list import list_runs
from kopt.search.runs.run import open_run
from support.scripted_steps import KERNEL, Steps, answer, candidate, reference

A, B = candidate(5.0, "a"), candidate(4.0, "b")


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Return steps in a home of their own."""
    made = Steps(tmp_path / "home")
    made.install(monkeypatch.setattr)
    return made


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([candidate(1.0, str(n)) for n in range(13)], "13 candidates .* at most 12"),
        ([candidate(1.0, family="speed")], f"unknown family 'speed'; allowed: {FAMILIES[0]}, "),
        ([candidate(1.0, parents=(7,))], "parent 7 is no candidate of the run, which has 0 to 0"),
        ([candidate(1.0, parents=(-1,))], r"candidates\[0\]: parent -1"),
        ([candidate(1.0, tune={"BLOCK": 64})], "tune BLOCK=64; declared: nothing"),
        ([StepCandidate(source=reference(), tune={"BLOCK": 3})], "declared: BLOCK: 256, 128"),
        ([A, StepCandidate(source="\ud800")], r"candidates\[1\]: source is not valid"),
        ([StepCandidate(source="x" * (1 << 20) + "y")], "1048577 bytes: .* at most 1048576"),
        ([candidate(1.0, hypothesis="x" * 2001)], "2001 characters"),
        ([candidate(1.0, techniques=("Vec 8",))], r"candidates\[0\]: technique 'Vec 8' is none"),
        ([candidate(1.0, techniques=("vectorloads",))], "did you mean vector_loads"),
        ([candidate(1.0, techniques=tuple("abcde"))], "5 techniques are too many .* at most 4"),
    ],
)
def test_request_that_no_evaluation_could_answer_leaves_no_run(
    steps: Steps, given: list[StepCandidate], said: str
) -> None:
    with pytest.raises(ToolError, match=said):
        steps.take(*given, kernel=KERNEL)
    assert list_runs(steps.settings).runs == ()


@pytest.mark.parametrize(
    "fields", [{}, {"kernel": KERNEL, "run_id": "run-1"}, {"kernel": KERNEL, "key": "../x"}]
)
def test_unclear_request_is_refused(steps: Steps, fields: dict[str, Any]) -> None:
    with pytest.raises(ToolError):
        steps.take(**{"run_id": None, **fields})


def test_key_of_another_step_is_refused(steps: Steps) -> None:
    steps.take(A, kernel=KERNEL, key="1")
    with pytest.raises(ToolError, match="step key '1' has other candidates"):
        steps.take(B, key="1")


def test_refused_candidates_leave_the_run_as_it_was(steps: Steps) -> None:
    steps.take(A, kernel=KERNEL)
    rows = steps.rows()
    with pytest.raises(ToolError, match="which has 0 to 1"):
        steps.take(candidate(1.0, parents=(2,)))
    assert steps.rows() == rows
    assert [summary.status for summary in list_runs(steps.settings).runs] == ["paused"]


def _steps_of(home: Path, monkeypatch: pytest.MonkeyPatch, elapsed_s: float) -> Steps:
    """Return a begun run with a nanosecond to spend, whose evaluations say how long they took."""

    def took(job: EvaluationJob) -> Evaluation:
        return answer(job).model_copy(update={"elapsed_s": elapsed_s})

    steps = Steps(home, took)
    steps.install(monkeypatch.setattr)
    steps.take(kernel=KERNEL, budget=Budget(seconds=1e-9))
    return steps


def test_spent_time_leaves_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = _steps_of(tmp_path, monkeypatch, elapsed_s=0.0)
    with pytest.raises(ToolError, match="is spent: hand in fewer"):
        steps.take(A)


def test_time_of_the_starting_point_is_not_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = _steps_of(tmp_path, monkeypatch, elapsed_s=1e6)
    assert steps.take(A).candidates[0].status == "passed"


def test_budget_is_never_exceeded(steps: Steps) -> None:
    with pytest.raises(ToolError, match=r"2 new candidates, .* leaves room for 1"):
        steps.take(A, B, kernel=KERNEL, budget=Budget(evaluations=2))
    assert list_runs(steps.settings).runs == ()
    steps.take(A, kernel=KERNEL, budget=Budget(evaluations=2))
    with pytest.raises(ToolError, match=r"1 new candidate, .* leaves room for 0"):
        steps.take(B)
    assert steps.take().status == "budget"
    assert steps.take(B, budget=Budget(evaluations=3)).candidates[0].seq == 2


def test_second_caller_is_told_who_holds_the_run_and_when_it_gave_up(steps: Steps) -> None:
    run = steps.take(A, kernel=KERNEL).run
    with (
        open_run(run, steps.settings),
        pytest.raises(
            ToolError, match=rf"run {run} is being worked on by process \d+ \(kopt run\)"
        ),
    ):
        steps.take(B, lock_wait_s=0.2)


def test_run_on_sim_begins_for_the_named_architecture_and_keeps_it(steps: Steps) -> None:
    run = steps.take(A, kernel=KERNEL, arch="sm_90a").run
    with pytest.raises(ToolError, match=f"{run} is a run for sm_90a, not for sm_80"):
        steps.take(B, arch="sm_80")
    assert steps.take(B, arch="sm_90a").arch == "sm_90a"
    assert {job.arch for job in steps.jobs} == {"sm_90a"}
