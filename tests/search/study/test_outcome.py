"""What a run of a study came to, read from runs whose story is known."""

import math
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.status import Provenance, Status
from kopt.search.records.budget import Budget
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.rounds.advance import run_search
from kopt.search.study.outcome import RunOutcome, read_standing, read_targets
from kopt.search.study.plan import Cell
from support.populations import failed
from support.scripted_runs import new_store, scripted_answer, search
from support.study_cases import plan
from support.told_run import told_run

CELL = Cell(kernel="made_up_b8", arm="full", repeat=0, place=0, run="run-1")


def _outcome(home: Path, target: float) -> RunOutcome:
    found = read_standing(CELL, target, Settings(home)).outcome
    assert found is not None
    return found


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a home with the told run: 1.0, 1.2, wrong, its fix 1.05, then 1.4, all measured."""
    home = tmp_path_factory.mktemp("told")
    told_run(home).close()
    return home


def test_measured_run_has_the_speed_of_its_final_benchmark(told: Path) -> None:
    found = _outcome(told, 1.3)
    assert (found.winner, found.speed, found.provenance) == (4, 1.38, Provenance.MEASURED)
    assert found.speed_interval == pytest.approx((1.375, 1.385))
    assert (found.candidates, found.tokens) == (4, 5600)
    assert found.usd == pytest.approx(0.05)


def test_target_counts_what_was_evaluated_and_asked_until_then(told: Path) -> None:
    early = _outcome(told, 1.15).target
    assert (early.ending, early.candidate, early.candidates) == ("reached", 1, 1)
    assert early.tokens == 2300  # planner and first coder
    assert early.usd == pytest.approx(0.02)
    late = _outcome(told, 1.3).target
    assert (late.ending, late.candidate, late.candidates, late.tokens) == ("reached", 4, 4, 5600)


def test_target_is_reached_by_the_lower_bound_of_an_interval(told: Path) -> None:
    assert _outcome(told, 1.195).target.candidate == 1
    assert _outcome(told, 1.198).target.candidate == 4  # 1.2 is 1.195 to 1.205


def test_target_may_be_a_share_of_the_fastest_that_any_run_found(tmp_path: Path) -> None:
    shares = plan("made_up_b8", "made_up_b9", target=0.9, is_share=True)
    home = Settings(tmp_path)
    assert read_targets(shares, home) == {"made_up_b8": math.inf, "made_up_b9": math.inf}
    one, other = [cell for cell in shares.cells() if cell.kernel == "made_up_b8"]
    told_run(tmp_path, run_id=other.run).close()  # its fastest candidate is 1.4
    targets = read_targets(shares, home)
    assert targets == {"made_up_b8": pytest.approx(1.26), "made_up_b9": math.inf}
    reached = read_standing(other, targets[other.kernel], home).outcome
    assert reached is not None and reached.target.candidate == 4
    assert read_standing(one, targets[one.kernel], home).status == "not_begun"


def test_run_that_ended_by_itself_never_reaches_it_at_all_that_it_cost(told: Path) -> None:
    target = _outcome(told, 1.5).target
    assert (target.ending, target.candidate, target.candidates) == ("never", None, 4)
    assert target.tokens == 5600


def test_estimated_run_counts_from_its_start_and_a_budget_cuts_it(tmp_path: Path) -> None:
    with new_store(tmp_path, budget=Budget(evaluations=3)) as store:
        run_search(search(store))
    found = _outcome(tmp_path, 100.0)
    assert (found.target.ending, found.candidates) == ("cut", 2)
    assert found.provenance is Provenance.ESTIMATED and found.speed_interval is None
    assert found.speed is not None and found.speed == found.ratio and found.speed > 1.0
    reached = _outcome(tmp_path, found.speed).target
    assert reached.ending == "reached" and 0 < reached.candidates <= 2


def test_estimated_run_of_a_start_that_fails_has_no_speed_and_reaches_nothing(
    tmp_path: Path,
) -> None:
    def failing(job: EvaluationJob) -> Evaluation:
        unfit = failed().model_copy(update={"status": Status.LAUNCH_ERROR})  # tune may mend it
        return unfit if job.candidate == 0 else scripted_answer(job)

    with new_store(tmp_path) as store:
        run_search(search(store, failing))
    found = _outcome(tmp_path, 1.3)
    assert found.winner is not None
    assert (found.speed, found.ratio, found.target.ending) == (None, None, "never")
    with new_store(tmp_path / "b") as store:
        run_search(search(store, lambda _: failed()))
    found = _outcome(tmp_path / "b", 1.3)
    assert (found.winner, found.speed, found.ratio) == (None, None, None)


def test_run_that_is_under_way_or_not_begun_has_no_outcome(tmp_path: Path) -> None:
    assert read_standing(CELL, 1.3, Settings(tmp_path)).status == "not_begun"
    with new_store(tmp_path):
        standing = read_standing(CELL, 1.3, Settings(tmp_path))
    assert (standing.status, standing.outcome) == ("running", None)
    # Its id is a part of the other's: that is another run.
    other = CELL.model_copy(update={"run": "run-"})
    assert read_standing(other, 1.3, Settings(tmp_path)).status == "not_begun"
