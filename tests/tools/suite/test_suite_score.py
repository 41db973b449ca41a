"""The score of a suite from its results on disk: what counts, what is told, what is left out."""

from pathlib import Path

import pytest

from kopt.kernels.status import Status
from kopt.tools.suite.results_folder import writing_results
from kopt.tools.suite.suite_file import load_suite
from kopt.tools.suite.suite_score import ScoreRequest, SuiteScore, score_suite
from kopt.tools.suite.task_result import ResultSet, SearchCost, SuiteTaskResult
from support.small_suites import write_suite, write_task
from support.suite_results import GPU_SET, SIM_SET, over, task_result, timed, unlike

MARKED = """\
name: small
problems:
  fast: {}
  slow: {}
  wrong: {}
  zeros: {degenerate: its output is constant}
  rnn: {unsupported: it mutates a tensor}
  later: {}
  huge: {excluded: does not fit}
"""
RESULTS = (
    task_result("fast", timed(over("torch_eager", 3.0, (2.8, 3.2), 30.0))),
    task_result("slow", timed(over("torch_eager", 0.5, (0.4, 0.6), 5.5))),
    task_result("wrong", status=Status.INCORRECT),
    task_result("zeros", timed(unlike("torch_eager", 90.0))),
)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """Return the folder of a suite with every kind of task."""
    folder = write_suite(tmp_path / "kb", MARKED)
    for name in ("fast", "slow", "wrong", "zeros", "later", "huge"):
        write_task(folder, name)
    return folder


def _score(
    suite: Path,
    results: tuple[SuiteTaskResult, ...] = RESULTS,
    request: ScoreRequest | None = None,
    which: ResultSet = GPU_SET,
) -> SuiteScore:
    with writing_results(suite / "results", which) as folder:
        for result in results:
            folder.write(result)
        return score_suite(load_suite(suite), folder, request or ScoreRequest("eager"))


def test_all_tasks_count_whatever_became_of_them(suite: Path) -> None:
    score = _score(suite)
    whole, sound = score.scores
    assert (whole.tasks, whole.valid, whole.timed) == (6, 3, 3)
    assert whole.valid_rate.value == pytest.approx(3 / 6)
    assert whole.fast[0].by_estimate.value == pytest.approx(2 / 6)
    assert (sound.sound_only, sound.tasks, sound.valid) == (True, 5, 2)
    assert sound.fast[0].by_estimate.value == pytest.approx(1 / 5)
    assert (score.not_run, score.excluded) == (("later",), ("huge",))


def test_each_task_says_why_it_is_not_valid(suite: Path) -> None:
    tasks = {one.task: one for one in _score(suite).tasks}
    assert tasks["wrong"].reason == "incorrect"
    assert tasks["rnn"].reason == "it mutates a tensor"
    assert tasks["later"].reason == "not run"
    assert "huge" not in tasks
    assert (tasks["zeros"].is_like_for_like, tasks["fast"].is_like_for_like) == (False, True)


def test_over_a_baseline_that_nothing_was_timed_over_speedups_are_unavailable(suite: Path) -> None:
    score = _score(suite, request=ScoreRequest("compile_max"))
    assert score.speeds == "unavailable"
    assert "no valid task was timed over compile_max" in score.why_unavailable
    assert score.scores[0].fast[0].by_estimate.value is None
    assert score.scores[0].valid_rate.value == pytest.approx(3 / 6)
    assert score.curve == ()


def test_on_sim_no_speedup_is_given_even_if_a_result_had_one(suite: Path) -> None:
    score = _score(suite, which=SIM_SET)
    assert score.speeds == "unavailable"
    assert "no estimate is a speedup" in score.why_unavailable
    assert {one.speedup for one in score.tasks} == {None}
    assert score.scores[0].geomean.value is None


def test_all_failing_is_a_score_and_not_unavailable(suite: Path) -> None:
    failed = tuple(task_result(one, status=Status.DATA_RACE) for one in ("fast", "slow", "zeros"))
    score = _score(suite, failed)
    assert score.speeds == "measured"
    assert score.scores[0].fast[0].by_estimate.value == 0.0
    assert score.scores[0].geomean.value is None


def test_costs_of_runs_are_added_up(suite: Path) -> None:
    costs = (
        SearchCost(run="run-1", candidates=10, tokens=1000, usd=0.5, is_paid=True),
        SearchCost(run="run-2", candidates=20, tokens=3000, usd=1.5, is_paid=False),
    )
    found = tuple(
        one.model_copy(update={"cost": cost}) for one, cost in zip(RESULTS[:2], costs, strict=True)
    )
    cost = _score(suite, found).cost
    assert cost is not None
    assert (cost.tasks, cost.candidates, cost.tokens, cost.usd) == (2, 30, 4000, 2.0)
    assert cost.unpaid == 1
    assert _score(suite).cost is None


def test_the_document_reads_back(suite: Path) -> None:
    score = _score(suite)
    text = score.model_dump_json(by_alias=True)
    assert SuiteScore.model_validate_json(text) == score
    assert '"schema":"kopt.suite-score/1"' in text
