"""What a live view reads of runs, and when it reads it again."""

from pathlib import Path

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import Settings
from kopt.search.rounds.advance import run_search
from kopt.search.store.run_lock import is_run_locked
from kopt.server.live_view.run_pages import RunPages
from support.scripted_runs import new_store, search
from support.told_run import told_run


def test_run_is_read_anew_only_when_its_store_has_changed(tmp_path: Path) -> None:
    with told_run(tmp_path) as store:
        pages = RunPages(Settings(tmp_path))
        first = pages.run("run-1")
        assert pages.run("run-1") is first
        store.resume(store.reader.state().settings)
        second = pages.run("run-1")
    assert first.contents.report.status == "done"
    assert second.contents.report.status == "running"


def test_stamp_changes_with_every_write_and_with_nothing_else(tmp_path: Path) -> None:
    with told_run(tmp_path) as store:
        pages = RunPages(Settings(tmp_path))
        before = pages.stamp_of(["run-1"]), pages.stamp_of([])
        pages.run("run-1")
        pages.list()
        assert (pages.stamp_of(["run-1"]), pages.stamp_of([])) == before
        store.add_tool_time(1.0)
        assert pages.stamp_of(["run-1"]) != before[0] and pages.stamp_of([]) != before[1]


def test_run_whose_process_has_died_is_interrupted_though_nothing_was_written(
    tmp_path: Path,
) -> None:
    with new_store(tmp_path) as store:
        folder, pages = store.folder, RunPages(Settings(tmp_path))
        assert is_run_locked(folder) and pages.list().runs[0].status == "running"
        assert pages.run("run-1").contents.report.status == "running"
    assert pages.run("run-1").contents.report.status == "interrupted"
    assert pages.list().runs[0].status == "interrupted"


def test_looking_neither_writes_to_a_run_nor_holds_its_lock(tmp_path: Path) -> None:
    told_run(tmp_path).close()
    folder = tmp_path / "runs" / "run-1"
    before = (folder / "run.sqlite").read_bytes()
    pages = RunPages(Settings(tmp_path))
    pages.list()
    pages.run("run-1")
    assert (folder / "run.sqlite").read_bytes() == before and not is_run_locked(folder)


def test_last_events_are_told_as_the_run_told_them(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        run_search(search(store))
        lines = RunPages(Settings(tmp_path)).run("run-1").lines
    assert len(lines) == 12 and "kept: #" in lines[-3] and "full check of #" in lines[-2]


def test_damaged_run_stands_beside_the_sound_ones_and_says_what_to_do(tmp_path: Path) -> None:
    told_run(tmp_path).close()
    (tmp_path / "runs" / "run-0").mkdir()
    (tmp_path / "runs" / "run-0" / "run.sqlite").write_text("no database at all")
    pages = RunPages(Settings(tmp_path))
    found = pages.list()
    assert [run.run for run in found.runs] == ["run-1"]
    assert [run.run for run in found.damaged] == ["run-0"]
    with pytest.raises(SetupError, match="damaged"):
        pages.run("run-0")


def test_run_that_is_not_there_is_refused_with_what_there_is(tmp_path: Path) -> None:
    told_run(tmp_path).close()
    with pytest.raises(ToolError, match="newest first: run-1"):
        RunPages(Settings(tmp_path)).stamp_of(["run-2"])
