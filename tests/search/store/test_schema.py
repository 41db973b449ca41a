"""What a run file refuses, and how it is opened."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.search.rounds.advance import run_search
from kopt.search.storage.artifacts import open_artifacts
from kopt.search.store.round_table import NewRound
from kopt.search.store.run_reader import RunReader
from kopt.search.store.schema import SCHEMA_VERSION, open_viewer, open_writer
from kopt.search.store.store import FILE_NAME, RunStore
from kopt.search.store.tables import ROUND
from support.populations import SOURCE
from support.scripted_runs import new_store, search, start


def test_newer_file_is_refused_by_writer_and_viewer(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    connection = open_writer(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    for open_file in (open_writer, open_viewer):
        with pytest.raises(SetupError, match="upgrade kopt"):
            open_file(path)


def test_file_of_a_format_below_zero_is_refused_as_damaged(tmp_path: Path) -> None:
    path = tmp_path / FILE_NAME
    connection = open_writer(path)
    connection.execute("PRAGMA user_version = -1")
    connection.close()
    for open_file in (open_writer, open_viewer):
        with pytest.raises(SetupError, match="format -1, which no kopt writes"):
            open_file(path)


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_file_of_an_older_format_gets_what_is_new_and_keeps_what_it_has(
    tmp_path: Path, version: int
) -> None:
    with new_store(tmp_path) as store:
        run_search(search(store))
        members, events = store.reader.members(), store.reader.events()
        rounds = store.reader.rounds()
        _turn_into_format(version, path := store.folder / FILE_NAME)
    viewer = RunReader(connection := open_viewer(path), open_artifacts(tmp_path))
    assert viewer.members() == members
    assert viewer.rounds() == (() if version < 3 else rounds)
    assert viewer.branches() == ()
    connection.close()
    with RunStore(path.parent, open_artifacts(tmp_path)) as store:
        assert (store.reader.members(), store.reader.events()) == (members, events)
        assert store.reader.rounds() == rounds
        store.reopen(store.reader.state().settings)
        proposal = start(SOURCE + "\n").model_copy(update={"note": "why"})
        store.rounds.open(NewRound(9, "generated", (proposal,)))
        store.queue.add([0], "tie")
        assert store.reader.members()[-1].note == "why"
        new = tmp_path / "new.sqlite"
        with closing(open_viewer(path)) as connection, closing(open_writer(new)) as other:
            assert connection.execute("PRAGMA foreign_key_check").fetchall() == []
            assert _tables(connection) == _tables(other)


def _tables(connection: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    """Return the columns of every table, without their order in an altered one."""
    names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    return {
        name: sorted(row[1:] for row in connection.execute(f"PRAGMA table_info({name})"))
        for (name,) in names
    }


def _turn_into_format(version: int, path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute(ROUND.replace("TABLE round", "TABLE old").replace("'generated', ", ""))
    connection.execute("INSERT INTO old SELECT * FROM round")
    connection.execute("DROP TABLE round")
    connection.execute("ALTER TABLE old RENAME TO round")
    if version < 4:
        _turn_into_format_3(connection)
    if version < 3:
        _turn_into_format_2(connection)
    if version < 2:
        connection.execute("ALTER TABLE candidate DROP COLUMN note")
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def _turn_into_format_3(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE candidate DROP COLUMN techniques")
    connection.execute("ALTER TABLE run DROP COLUMN knowledge_sha")
    for column in ("samples_sha", "update_sha"):
        connection.execute(f"ALTER TABLE round DROP COLUMN {column}")


def _turn_into_format_2(connection: sqlite3.Connection) -> None:
    for column in ("branch", "attempt"):
        connection.execute(f"ALTER TABLE candidate DROP COLUMN {column}")
    for column in ("gpu_seconds", "measured_as"):
        connection.execute(f"ALTER TABLE evaluation DROP COLUMN {column}")
    for column in ("documents_sha", "tool_gpu_seconds"):
        connection.execute(f"ALTER TABLE run DROP COLUMN {column}")
    connection.execute("ALTER TABLE lineage DROP COLUMN place")
    for table in ("branch", "round", "llm_call"):
        connection.execute(f"DROP TABLE {table}")


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
        "INSERT INTO lineage VALUES (0, 99, 'tune', 0)",
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
        store.rounds.open(NewRound(0, "start", (search(store).start,)))
        connection = sqlite3.connect(store.folder / FILE_NAME, isolation_level=None)
        connection.execute("PRAGMA foreign_keys = ON")
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
        connection.close()
