"""`kopt docs search --run`: what was retrieved is shown with the run."""

from pathlib import Path

import pytest

from kopt.server.exits import ExitCode
from support.built_docs import copy_docs
from support.command_line import Kopt
from support.scripted_runs import new_store


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kopt: Kopt, built_docs: Path) -> str:
    """Return the id of a run in a home of its own."""
    monkeypatch.setenv("KOPT_HOME", str(tmp_path))
    with new_store(copy_docs(built_docs, tmp_path), "run-1"):
        return "run-1"


def test_searches_and_readings_for_a_run_are_shown_with_it(kopt: Kopt, run: str) -> None:
    words = ("docs", "search", "cp_async_wait_group", "--k", "1", "--json", "--run", run)
    uid = kopt(*words).document["hits"][0]["uid"]
    assert kopt("docs", "show", uid, "--run", run).code == ExitCode.PASSED
    retrievals = kopt("runs", "show", run, "--json").document["retrievals"]
    assert [one["query"] for one in retrievals] == ["cp_async_wait_group", None]
    assert [one["asked_by"] for one in retrievals] == ["kopt docs search", "kopt docs show"]
    assert {one["hits"][0]["uid"] for one in retrievals} == {uid}
    assert "Documents were asked 2 times; 1 of them" in kopt("runs", "show", run).stdout


def test_everything_that_a_process_asks_is_logged_with_its_run(
    kopt: Kopt, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_RUN", run)
    uid = kopt("docs", "search", "warp", "--k", "1", "--json").document["hits"][0]["uid"]
    kopt("docs", "show", uid)
    retrievals = kopt("runs", "show", run, "--json").document["retrievals"]
    assert [one["asked_by"] for one in retrievals] == ["kopt docs search", "kopt docs show"]


def test_run_without_retrievals_says_nothing_of_them(kopt: Kopt, run: str) -> None:
    assert "Documents" not in kopt("runs", "show", run).stdout
    assert kopt("runs", "show", run, "--json").document["retrievals"] == []


def test_every_query_of_a_batch_is_logged_but_those_refused(
    kopt: Kopt, run: str, tmp_path: Path
) -> None:
    (tmp_path / "queries").write_text("warp\n...\ngrid\n")
    kopt("docs", "search", "--batch", tmp_path / "queries", "--run", run)
    retrievals = kopt("runs", "show", run, "--json").document["retrievals"]
    assert [one["query"] for one in retrievals] == ["warp", "grid"]


def test_unknown_run_is_answered_with_those_that_there_are(kopt: Kopt, run: str) -> None:
    ending = kopt("docs", "search", "warp", "--run", "run-2")
    assert (ending.code, ending.stdout) == (ExitCode.USAGE, "")
    assert f"newest first: {run}" in ending.stderr


def test_hidden_source_is_refused_and_its_hiding_is_logged(
    kopt: Kopt, run: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KOPT_WITHOUT_SOURCES", "notes,winners")
    ending = kopt("docs", "search", "warp", "--source", "notes")
    assert ending.code == ExitCode.USAGE
    assert "KOPT_WITHOUT_SOURCES" in ending.stderr
    found = kopt("docs", "search", "warp", "--run", run, "--json").document
    assert not {"notes", "winners"} & found["sources"].keys()
    (logged,) = kopt("runs", "show", run, "--json").document["retrievals"]
    assert logged["without"] == ["notes", "winners"]
