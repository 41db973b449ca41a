"""What a run file refuses, and how it is opened."""

import sqlite3
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.search.schema import SCHEMA_VERSION, open_viewer, open_writer
from kopt.search.store import FILE_NAME
from support.scripted_runs import new_store, search


def test_newer_file_is_refused_by_writer_and_viewer(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    connection = open_writer(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    for open_file in (open_writer, open_viewer):
        with pytest.raises(SetupError, match="upgrade kopt"):
            open_file(path)


def test_writer_syncs_every_commit_of_a_write_ahead_log(tmp_path: Path) -> None:
    connection = open_writer(tmp_path / FILE_NAME)
    full = 2
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (full,)
    assert connection.execute("PRAGMA foreign_keys").fetchone() == (1,)
    connection.close()


def test_viewer_reads_beside_the_writer_and_cannot_write(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        viewer = open_viewer(store.folder / FILE_NAME)
        assert viewer.execute("SELECT count(*) FROM run").fetchone() == (1,)
        with pytest.raises(sqlite3.OperationalError, match="readonly"):
            viewer.execute("DELETE FROM run")
        viewer.close()


def test_viewer_of_a_missing_file_is_a_setup_error(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="cannot open"):
        open_viewer(tmp_path / FILE_NAME)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE evaluation SET state = 'done' WHERE id = 1",
        "UPDATE evaluation SET status = 'passed' WHERE id = 1",
        "UPDATE evaluation SET state = 'leased' WHERE id = 1",
        "UPDATE evaluation SET level = 'thorough' WHERE id = 1",
        "INSERT INTO evaluation (candidate, level, state) VALUES (0, 'quick', 'queued')",
        "INSERT INTO evaluation (candidate, level, state) VALUES (99, 'quick', 'queued')",
        "INSERT INTO lineage VALUES (0, 99, 'tune')",
        "INSERT INTO measurement VALUES (1, 'w', 'latency', 'us', 'unavailable', 0.0)",
        "INSERT INTO measurement VALUES (1, 'w', 'latency', 'us', 'measured', NULL)",
        "INSERT INTO measurement VALUES (1, 'w', 'latency', 'us', 'guessed', 1.0)",
        "INSERT INTO event VALUES (99, 0, 'run_started', '{}')",
        "INSERT INTO event SELECT max(seq) + 1, 0, 'run_started', '{broken' FROM event",
        "UPDATE event SET kind = 'other' WHERE seq = 1",
        "DELETE FROM event WHERE seq = 1",
        "UPDATE run SET status = 'done'",
        "UPDATE run SET settings = '{broken'",
        "UPDATE run SET round = 'two'",
    ],
)
def test_row_that_cannot_be_true_is_refused(tmp_path: Path, statement: str) -> None:
    with new_store(tmp_path) as store:
        store.start_round(0, [search(store).start])
        connection = sqlite3.connect(store.folder / FILE_NAME, isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
        connection.close()
