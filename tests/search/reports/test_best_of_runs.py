"""The best of earlier runs: whose, on what, and what is passed over."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.search.reports.best_of_runs import best_of_runs
from support.scripted_steps import KERNEL, Steps, candidate

FAST, SLOW = candidate(2.0, "fast"), candidate(5.0, "slow")


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    made = Steps(tmp_path / "home")
    made.install(monkeypatch.setattr)
    return made


def test_the_fastest_candidate_of_each_architecture_is_named_with_its_address(
    steps: Steps,
) -> None:
    steps.take(SLOW, kernel=KERNEL)
    fast = steps.take(SLOW, FAST, kernel=KERNEL).run
    other = steps.take(SLOW, kernel=KERNEL, arch="sm_90a").run
    found = {one.arch: one for one in best_of_runs(KERNEL, "", steps.settings)}
    assert set(found) == {"sm_100a", "sm_90a"}
    assert found["sm_100a"].source == f"kopt://runs/{fast}/candidates/2"
    assert (found["sm_100a"].estimated_us, found["sm_100a"].measured) == (2.0, None)
    assert found["sm_90a"].source == f"kopt://runs/{other}/candidates/1"
    assert found["sm_90a"].label == "best of earlier runs for sm_90a"


def test_runs_of_other_kernels_and_callers_and_the_own_run_are_left_out(steps: Steps) -> None:
    mine = steps.take(FAST, kernel=KERNEL, owner="token:1").run
    assert best_of_runs("silu_and_mul_b128xh14336", "", steps.settings) == ()
    assert best_of_runs(KERNEL, "token:2", steps.settings) == ()
    assert len(best_of_runs(KERNEL, "token:1", steps.settings)) == 1
    assert best_of_runs(KERNEL, "", steps.settings, without=mine) == ()


def test_a_run_that_found_nothing_better_than_its_start_is_no_news(steps: Steps) -> None:
    steps.take(candidate(99.0, "worse"), kernel=KERNEL)
    assert best_of_runs(KERNEL, "", steps.settings) == ()


def test_a_study_that_hides_winners_hides_earlier_runs(steps: Steps) -> None:
    steps.take(FAST, kernel=KERNEL)
    hidden = replace(steps.settings, without_sources=("winners",))
    assert best_of_runs(KERNEL, "", hidden) == ()


def test_a_damaged_run_hides_no_other(steps: Steps) -> None:
    kept = steps.take(FAST, kernel=KERNEL).run
    damaged = steps.take(FAST, kernel=KERNEL).run
    file = steps.settings.runs / damaged / "run.sqlite"
    file.write_bytes(b"x" * 4096)
    (one,) = best_of_runs(KERNEL, "", steps.settings)
    assert kept in one.source


def test_estimates_of_another_version_are_not_compared(
    steps: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps.take(FAST, kernel=KERNEL)
    monkeypatch.setattr("kopt.search.reports.best_of_runs.__version__", "9.9.9")
    assert best_of_runs(KERNEL, "", steps.settings) == ()
