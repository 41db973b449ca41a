"""Several processes learn at once, and a process may be killed at any moment."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import pytest

from kopt.search.knowledge.ledger import FILE_NAME, FORMAT, open_ledger
from kopt.search.knowledge.store import KnowledgeStore
from kopt.search.knowledge.yaml_writer import render_small
from support.knowledge_cases import ENTRY, SEED

pytestmark = pytest.mark.slow  # processes that are killed at every step
SUPPORT = Path(__file__).resolve().parents[2] / "support"
TIME_LIMIT_S = 240.0
RUNS = ("run-1", "run-2", "run-3", "run-4")
COUNT = 6


def _start(script: str, *words: object, **pipes: Any) -> "subprocess.Popen[str]":
    command = [sys.executable, "-P", str(SUPPORT / script), *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": str(SUPPORT.parent)}
    return subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE, **pipes)


def test_learners_at_once_lose_nothing_and_count_nothing_twice(tmp_path: Path) -> None:
    folder = tmp_path / "knowledge"  # which all of them make at once
    learners = [
        _start("knowledge_learner.py", folder, run, COUNT, stdin=subprocess.PIPE) for run in RUNS
    ]
    for learner in learners:
        assert learner.stdout is not None and learner.stdout.readline() == "ready\n"
    for learner in learners:
        assert learner.stdin is not None
        learner.stdin.write("go\n")
        learner.stdin.flush()
    for learner in learners:
        learner.communicate(timeout=TIME_LIMIT_S)
    assert [learner.returncode for learner in learners] == [0] * len(RUNS)
    with KnowledgeStore(folder) as store:
        base = store.base()
        (evidence,) = base.entries[ENTRY].evidence["sm_90a"].values()
        assert evidence.tries == len(store.samples()) == len(RUNS) * COUNT + 1
        assert {note.text for note in base.entries[ENTRY].notes} == {f"by {run}" for run in RUNS}
        assert base.version == len(RUNS) * (COUNT + 1) + 1
        assert store.path.read_text("utf-8") == render_small(base, SEED)


def test_a_kill_at_any_step_of_any_write_loses_nothing(tmp_path: Path) -> None:
    driver = _start("knowledge_crash_driver.py", tmp_path)
    output, _ = driver.communicate(timeout=TIME_LIMIT_S)
    seen = json.loads(output)
    assert seen["problems"] == []
    assert seen["killed"] == seen["steps"] > 50


class _Overtaken(sqlite3.Connection):
    """A connection before whose second question another process creates the ledger."""

    folder: ClassVar[Path]
    questions = 0

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Run a statement, after the other process at the second question."""
        if "sqlite_schema" in sql or sql == "PRAGMA user_version":
            self.questions += 1
            if self.questions == 2:
                with closing(sqlite3.connect(self.folder / FILE_NAME)) as other:
                    other.execute("CREATE TABLE base (one INTEGER)")
                    other.execute(f"PRAGMA user_version = {FORMAT}")
        return super().execute(sql, parameters)


def test_a_ledger_that_is_created_while_it_is_opened_is_no_foreign_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _Overtaken.folder = tmp_path
    connect = partial(sqlite3.connect, factory=_Overtaken)
    monkeypatch.setattr(sqlite3, "connect", _once(connect, sqlite3.connect))
    with closing(open_ledger(tmp_path)) as connection:
        assert connection.execute("SELECT count(*) FROM base").fetchone() == (0,)


def _once(first: Callable[..., Any], later: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is `first` at its first call."""
    calls = iter([first])

    def call(*words: Any, **named: Any) -> Any:
        return next(calls, later)(*words, **named)

    return call
