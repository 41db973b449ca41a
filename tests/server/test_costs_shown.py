"""Costs of model calls in lists of runs: paid, or played and marked so."""

from pathlib import Path

import pytest

from kopt.config.settings import ClaudeAccess, Settings
from kopt.kernels.problem_loader import load_problems
from kopt.search.models.model_source import PLAYED_KEY, ModelSource
from kopt.search.reports.run_list import RunList, RunSummary, list_runs
from kopt.search.runs.run import RunRequest, begin_run, reopen_run
from kopt.server.session import print_view
from kopt.server.views.run_view import runs_table

KERNEL = "silu_and_mul_b8xh14336"
REAL = ClaudeAccess(api_key="sk-ant-not-a-key-of-anybody")


def _summary(settings: Settings) -> RunSummary:
    (found,) = list_runs(settings).runs
    spend = found.spend.model_copy(update={"calls": 3, "cost_usd": 1.25})
    return found.model_copy(update={"spend": spend})


@pytest.mark.parametrize(
    ("key", "replays", "is_paid"),
    [("sk-ant-not-a-key", False, True), (PLAYED_KEY, False, False), ("sk-ant-x", True, False)],
)
def test_costs_that_nobody_pays_are_marked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], key: str, replays: bool, is_paid: bool
) -> None:
    assert load_problems()
    settings = Settings(tmp_path, claude=ClaudeAccess(api_key=key))
    begin_run(RunRequest(kernel=KERNEL, is_paid=not replays), settings).close()
    print_view(runs_table(RunList(runs=(_summary(settings),))))
    assert ("$1.25 not paid" not in capsys.readouterr().out) == is_paid


def test_run_that_was_played_and_goes_on_with_a_key_is_paid(tmp_path: Path) -> None:
    played = Settings(tmp_path, claude=ClaudeAccess(api_key=PLAYED_KEY))
    begin_run(RunRequest(kernel=KERNEL), played).close()
    (run,) = [one.run for one in list_runs(played).runs]
    real = Settings(tmp_path, claude=REAL)
    recording = ModelSource(replay=tmp_path / "none.jsonl")
    reopen_run(run, real, models=recording).close()
    assert not _summary(real).is_paid
    reopen_run(run, real).close()
    assert _summary(real).is_paid
