"""`kopt runs rm`: what goes, what stays, what it frees."""

import os
import sys
from pathlib import Path

import pytest

from kopt.config.files import folder_size
from kopt.config.home_use import using_home
from kopt.search.rounds.advance import run_search
from kopt.search.store.run_lock import AT_ONCE, RunLock
from kopt.server.exits import ExitCode
from support.command_line import Kopt
from support.on_terminal import OnTerminal
from support.scripted_runs import new_store, search

KOPT = Path(sys.executable).with_name("kopt")
OLD, MIDDLE, NEW = "run-20200101-120000-000", "run-20200201-120000-000", "run-29990101-120000-000"


@pytest.fixture
def home(kopt: Kopt, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Return a KOPT_HOME with three runs that have ended."""
    del kopt  # sets its own home first
    monkeypatch.setenv("KOPT_HOME", str(tmp_path))
    for name in (OLD, MIDDLE, NEW):
        with new_store(tmp_path, name) as store:
            run_search(search(store))
    return tmp_path


def _runs(kopt: Kopt) -> list[str]:
    return [one["run"] for one in kopt("runs", "--json").document["runs"]]


@pytest.mark.parametrize(
    ("words", "left"),
    [
        ((OLD,), [NEW, MIDDLE]),
        (("20200101", "20200201"), [NEW]),
        (("--older-than", "30d"), [NEW]),
        (("--keep", "1"), [NEW]),
        (("--older-than", "30d", "--keep", "2"), [NEW, MIDDLE]),
        (("--keep", "0"), []),
    ],
)
def test_chosen_runs_go_and_the_others_can_still_be_shown(
    kopt: Kopt, home: Path, words: tuple[str, ...], left: list[str]
) -> None:
    artifacts = folder_size(home / "store")[0]
    sizes = {folder.name: folder_size(folder)[0] for folder in (home / "runs").iterdir()}
    document = kopt("runs", "rm", *words, "--yes", "--json").document
    artifacts -= folder_size(home / "store")[0]
    assert document["is_done"] and _runs(kopt) == left
    folders = sum(size for run, size in sizes.items() if run not in left)
    assert document["freed_bytes"] == folders + artifacts
    for run in left:
        assert kopt("runs", "show", run).code == ExitCode.PASSED
        assert kopt("runs", "export", run).code == ExitCode.PASSED


def test_last_run_takes_the_artifacts_with_it(kopt: Kopt, home: Path) -> None:
    assert kopt("runs", "rm", "--keep", "0", "--yes", "--json").document["artifacts"] > 0
    assert folder_size(home / "store")[0] == 0


def test_dry_run_removes_nothing_and_says_what_would_go(kopt: Kopt, home: Path) -> None:
    ending = kopt("runs", "rm", "--keep", "1", "--dry-run")
    assert OLD in ending.stdout and "2 runs would go" in ending.stdout
    assert len(_runs(kopt)) == 3


def test_running_run_is_never_removed(kopt: Kopt, home: Path) -> None:
    with RunLock(home / "runs" / OLD, AT_ONCE):
        named = kopt("runs", "rm", OLD, "--yes")
        assert (named.code, "is running" in named.stderr) == (ExitCode.USAGE, True)
        by_age = kopt("runs", "rm", "--older-than", "1d", "--yes")
        assert f"{OLD} stays: it is running" in by_age.stdout
    assert _runs(kopt) == [NEW, OLD]


def test_artifacts_wait_while_another_process_may_name_them(kopt: Kopt, home: Path) -> None:
    before = folder_size(home / "store")[0]
    with using_home(home):
        ending = kopt("runs", "rm", "--keep", "0", "--yes")
    assert "the next removal takes them" in ending.stdout
    assert folder_size(home / "store")[0] == before


def test_damaged_run_can_be_removed(kopt: Kopt, home: Path) -> None:
    (home / "runs" / OLD / "run.sqlite").write_bytes(b"no database at all" * 100)
    assert "cannot be read" in kopt("runs", "rm", OLD, "--yes").stdout
    assert _runs(kopt) == [NEW, MIDDLE]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "--older-than 30d or --keep N"),
        ((OLD, "--keep", "1"), "not both"),
        (("run-x",), "no run matches 'run-x'"),
        (("--older-than", "30"), "is no age such as 12h, 30d or 8w"),
        ((OLD,), "no terminal"),
    ],
)
def test_careless_call_removes_nothing(
    kopt: Kopt, home: Path, words: tuple[str, ...], said: str
) -> None:
    ending = kopt("runs", "rm", *words)
    assert (ending.code, said in ending.stderr) == (ExitCode.USAGE, True), ending
    assert len(_runs(kopt)) == 3


@pytest.mark.slow  # processes on a terminal
@pytest.mark.parametrize(("answer", "left"), [(b"y\n", 2), (b"n\n", 3)])
def test_on_a_terminal_it_asks(kopt: Kopt, home: Path, answer: bytes, left: int) -> None:
    with OnTerminal((KOPT, "runs", "rm", OLD), os.environ) as terminal:
        assert OLD.encode() in terminal.read_until(b"[y/N]: ")
        terminal.type(answer)
        terminal.ending()
    assert len(_runs(kopt)) == left
