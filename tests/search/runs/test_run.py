"""Runs on this machine: begun from a problem, driven with recorded answers, taken up again."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.status import Status
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.records.budget import Budget
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.records.run_state import RunSettings
from kopt.search.reports.contents import read_contents
from kopt.search.reports.run_report import view_run
from kopt.search.runs import parts
from kopt.search.runs.parts import RunPlace
from kopt.search.runs.run import RunRequest, begin_run, drive_run, reopen_run
from kopt.search.store.run_folders import new_run_folder
from kopt.search.store.store import RunStore
from kopt.tools.sim.device import SimDevice
from support.populations import failed, passed
from support.recorded_evaluator import RecordedEvaluator
from support.scripted_runs import settings as run_settings
from support.shared_caches import share_caches

KERNEL, MINE = "add_rmsnorm_fp4quant_b128xh2048", "mine_rmsnorm_b128xh2048"


@pytest.fixture
def settings(tmp_path: Path, shared_caches: Path) -> Settings:
    """Settings with a home and a user's copy of one problem, for which kopt writes no kernels."""
    source = Path(str(files("kopt.kernels"))) / "problems" / "add_rmsnorm_fp4quant"
    shutil.copytree(source, tmp_path / "problems" / "mine_rmsnorm")
    (tmp_path / "problems" / "mine_rmsnorm" / "definition.json").unlink()
    definition = tmp_path / "problems" / "mine_rmsnorm" / "problem.yaml"
    text = definition.read_text("utf-8").replace("add_rmsnorm_fp4quant", "mine_rmsnorm", 1)
    definition.write_text(text, "utf-8")
    home = share_caches(tmp_path / "home", shared_caches)
    return Settings(home, problems=tmp_path / "problems")


def _drive(
    store: RunStore,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    answer: Callable[[EvaluationJob], Evaluation] = lambda job: passed(sum(job.tune.values())),
) -> str:
    def stand_in(*_: object) -> RecordedEvaluator:
        return RecordedEvaluator(answer)

    monkeypatch.setattr(parts, "LocalEvaluator", stand_in)
    place = EvaluationSite(SimDevice(settings), None, settings, store.artifacts)
    return drive_run(store, RunPlace(place)).status


@pytest.mark.slow  # a whole run
def test_reference_kernel_is_swept_over_its_declared_values(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with begin_run(RunRequest(kernel=MINE), settings) as store:
        assert _drive(store, settings, monkeypatch) == "done"
        members = store.reader.members()
    assert len(members) > 1 and members[0].proposer == "start"
    assert {member.proposer for member in members[1:]} == {"sweep"}


def test_own_file_is_the_starting_point_under_its_own_name(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.cu"
    own.write_text("no header", "utf-8")
    with begin_run(RunRequest(kernel=MINE, start=own), settings) as store:
        refused = failed(Status.PLAN_ERROR)
        assert _drive(store, settings, monkeypatch, lambda _: refused) == "failed"
        assert [member.source_name for member in store.reader.members()] == ["own.cu"]


@pytest.mark.parametrize("kernel", [KERNEL, MINE])
def test_run_remembers_the_folder_of_a_problem_of_the_users_own(
    settings: Settings, kernel: str
) -> None:
    begin_run(RunRequest(kernel=kernel), settings).close()
    own = str(settings.problems) if kernel.startswith("mine") else None
    with view_run("run-", settings) as (reader, folder):
        contents = read_contents(reader, folder, replace(settings, problems=None))
    assert contents.report.problems == own
    assert contents.roof is not None


def test_unknown_kernel_leaves_no_run_behind(settings: Settings) -> None:
    with pytest.raises(ToolError):
        begin_run(RunRequest(kernel="unknown_b1"), settings)
    assert not settings.runs.exists()


@pytest.mark.slow  # a whole run
def test_run_that_was_begun_but_never_driven_can_be_resumed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin_run(RunRequest(kernel=KERNEL), settings).close()
    with reopen_run("run-", settings) as store:
        assert _drive(store, settings, monkeypatch) == "done"


@pytest.mark.slow  # a whole run
def test_finished_run_is_opened_as_it_is(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with begin_run(RunRequest(kernel=KERNEL), settings) as store:
        _drive(store, settings, monkeypatch)
        events = store.reader.events()
    with reopen_run("run-", settings, Budget(evaluations=1000)) as store:
        _drive(store, settings, monkeypatch)
        assert store.reader.events() == events


@pytest.mark.slow  # a whole run
def test_only_a_larger_budget_takes_a_spent_run_up_again(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with begin_run(RunRequest(kernel=KERNEL, budget=Budget(evaluations=2)), settings) as store:
        assert _drive(store, settings, monkeypatch) == "budget"
    with reopen_run("run-", settings, Budget(evaluations=2)) as store:
        assert _drive(store, settings, monkeypatch) == "budget"
    with reopen_run("run-", settings, Budget(evaluations=50)) as store:
        assert _drive(store, settings, monkeypatch) == "done"


def test_run_of_a_changed_problem_is_not_resumed_and_its_lock_is_free(
    settings: Settings, tmp_path: Path
) -> None:
    begin_run(RunRequest(kernel=MINE), settings).close()
    oracle = tmp_path / "problems" / "mine_rmsnorm" / "oracle.py"
    original = oracle.read_bytes()
    oracle.write_bytes(original + b"\n# other rounding\n")
    with pytest.raises(ToolError, match="has changed since"):
        reopen_run("run-", settings)
    oracle.write_bytes(original)
    reopen_run("run-", settings).close()


def test_ids_of_runs_begun_at_once_differ_and_sort_by_time(tmp_path: Path) -> None:
    names = [new_run_folder(tmp_path).name for _ in range(20)]
    assert names == sorted(set(names))


def test_unwritable_runs_folder_is_a_setup_error(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="cannot create"):
        new_run_folder(tmp_path / "missing")


def test_settings_of_a_run_of_an_older_kopt_are_read() -> None:
    known = run_settings().model_dump(mode="json")
    del known["search"]
    old = known | {"beam_width": 3, "rounds": 7, "early_stop_min_improvement": 0.1}
    search = RunSettings.model_validate(old).search
    assert (search.beam.width, search.beam.refine_rounds) == (3, 7)
    assert search.early_stop_min_improvement == 0.1
