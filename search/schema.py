"""The tables of a run file and how it is opened: one writer, any number of read-only viewers.

Ids are INTEGER or TEXT keys, `*_us` are Unix microseconds, `*_sha` point to `blob`, JSON is TEXT
that must be valid, closed sets are CHECKs, and every table is STRICT. One file holds one run.

Only the writer ever checkpoints: SQLite 3.7.0 to 3.51.2 can corrupt a WAL file when two
connections write or checkpoint at the same moment, and Python's bundled library is usually
one of those.

Source:
    https://www.sqlite.org/wal.html, section "WAL-reset bug"; https://www.sqlite.org/stricttables.html
"""

import logging
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from kopt.config.errors import SetupError
from kopt.kernels.status import Provenance, Status

logger = logging.getLogger(__name__)

SCHEMA_VERSION = 2
_OLDEST_SQLITE = (3, 38, 0)  # STRICT tables came with 3.37, built-in JSON with 3.38
_JOURNAL_LIMIT_BYTES = 64 << 20


def _one_of(column: str, values: type[Status] | type[Provenance]) -> str:
    return f"{column} IN ({', '.join(repr(value.value) for value in values)})"


_CREATE = (
    """CREATE TABLE run (
        id TEXT PRIMARY KEY,
        kernel TEXT NOT NULL,
        settings TEXT NOT NULL CHECK (json_valid(settings)),
        status TEXT NOT NULL
            CHECK (status IN ('running', 'paused', 'done', 'failed', 'budget')),
        round INTEGER NOT NULL CHECK (round >= -1),
        round_open INTEGER NOT NULL CHECK (round_open IN (0, 1)),
        beam TEXT NOT NULL CHECK (json_valid(beam)),
        stop_reason TEXT,
        stop_detail TEXT,
        winner INTEGER REFERENCES candidate (seq),
        spent_s REAL NOT NULL CHECK (spent_s >= 0.0),
        kopt_version TEXT NOT NULL,
        created_us INTEGER NOT NULL,
        finished_us INTEGER,
        CHECK ((status IN ('done', 'failed', 'budget')) = (finished_us IS NOT NULL)),
        CHECK (winner IS NULL OR status IN ('done', 'budget'))
    ) STRICT""",
    """CREATE TABLE blob (
        sha TEXT PRIMARY KEY CHECK (length(sha) = 64),
        size_bytes INTEGER NOT NULL CHECK (size_bytes >= 0),
        kind TEXT NOT NULL,
        created_us INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE candidate (
        seq INTEGER PRIMARY KEY,
        round INTEGER NOT NULL CHECK (round >= 0),
        source_sha TEXT NOT NULL REFERENCES blob (sha),
        source_name TEXT NOT NULL,
        tune TEXT NOT NULL CHECK (json_valid(tune)),
        family TEXT NOT NULL,
        proposer TEXT NOT NULL,
        created_us INTEGER NOT NULL,
        note TEXT NOT NULL DEFAULT '',
        UNIQUE (source_sha, tune)
    ) STRICT""",
    """CREATE TABLE lineage (
        child INTEGER NOT NULL REFERENCES candidate (seq),
        parent INTEGER NOT NULL REFERENCES candidate (seq),
        kind TEXT NOT NULL
            CHECK (kind IN ('tune', 'refine', 'expand', 'cross', 'fix', 'combine')),
        PRIMARY KEY (child, parent, kind),
        CHECK (parent < child)
    ) STRICT, WITHOUT ROWID""",
    f"""CREATE TABLE evaluation (
        id INTEGER PRIMARY KEY,
        candidate INTEGER NOT NULL REFERENCES candidate (seq),
        level TEXT NOT NULL CHECK (level IN ('quick', 'full')),
        state TEXT NOT NULL CHECK (state IN ('queued', 'leased', 'done')),
        lease_owner TEXT,
        attempts INTEGER NOT NULL DEFAULT 0,
        infra_failures INTEGER NOT NULL DEFAULT 0,
        interruptions INTEGER NOT NULL DEFAULT 0,
        status TEXT CHECK ({_one_of("status", Status)}),
        summary TEXT,
        device TEXT,
        sandbox TEXT,
        equivalence TEXT,
        elapsed_s REAL,
        started_us INTEGER,
        finished_us INTEGER,
        UNIQUE (candidate, level),
        CHECK ((state = 'leased') = (lease_owner IS NOT NULL)),
        CHECK ((state = 'done') = (status IS NOT NULL)),
        CHECK ((state = 'done') = (summary IS NOT NULL AND device IS NOT NULL
            AND elapsed_s IS NOT NULL AND finished_us IS NOT NULL))
    ) STRICT""",
    "CREATE INDEX open_evaluation ON evaluation (state) WHERE state <> 'done'",
    """CREATE TABLE evaluation_artifact (
        evaluation INTEGER NOT NULL REFERENCES evaluation (id),
        kind TEXT NOT NULL,
        sha TEXT NOT NULL REFERENCES blob (sha),
        PRIMARY KEY (evaluation, kind)
    ) STRICT, WITHOUT ROWID""",
    f"""CREATE TABLE measurement (
        evaluation INTEGER NOT NULL REFERENCES evaluation (id),
        workload TEXT NOT NULL,
        metric TEXT NOT NULL,
        unit TEXT NOT NULL,
        provenance TEXT NOT NULL CHECK ({_one_of("provenance", Provenance)}),
        value REAL,
        PRIMARY KEY (evaluation, workload, metric),
        CHECK ((provenance = 'unavailable') = (value IS NULL))
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE event (
        seq INTEGER PRIMARY KEY,
        at_us INTEGER NOT NULL,
        kind TEXT NOT NULL,
        data TEXT NOT NULL CHECK (json_valid(data))
    ) STRICT""",
    """CREATE TRIGGER event_gapless BEFORE INSERT ON event
        WHEN NEW.seq <> (SELECT coalesce(max(seq), 0) + 1 FROM event)
        BEGIN SELECT raise(ABORT, 'event.seq must be gapless'); END""",
    """CREATE TRIGGER event_no_update BEFORE UPDATE ON event
        BEGIN SELECT raise(ABORT, 'events are append-only'); END""",
    """CREATE TRIGGER event_no_delete BEFORE DELETE ON event
        BEGIN SELECT raise(ABORT, 'events are append-only'); END""",
)


# By the version that a file has: what makes the next one of it.
_UPGRADES = {1: "ALTER TABLE candidate ADD COLUMN note TEXT NOT NULL DEFAULT ''"}


def open_writer(path: Path) -> sqlite3.Connection:
    """Open or create the run file for its one writer, who must hold the run's lock.

    A file of an older kopt is brought up to date, in one transaction.

    Raises:
        SetupError: The SQLite library is too old, the file was written by a newer kopt, or by none.
    """
    _require_sqlite()
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # SQLite gives its journals this mode
    connection = sqlite3.connect(path, isolation_level=None, timeout=30.0)
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        logger.warning("%s: no WAL on this file system (%s); using a journal", path, mode)
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_LIMIT_BYTES}")
    version = _checked_version(connection, path)
    if version == 0:
        _write_version(connection, _CREATE)
    elif version < SCHEMA_VERSION:
        _write_version(connection, [_UPGRADES[n] for n in range(version, SCHEMA_VERSION)])
    return connection


def open_viewer(path: Path) -> sqlite3.Connection:
    """Open the run file read-only: never blocks the writer, never checkpoints.

    The file of an older kopt stays as it is: what is new in `SCHEMA_VERSION` is missing in it.

    Raises:
        SetupError: There is no such file, or it was written by a newer kopt or by none.
    """
    _require_sqlite()
    try:
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
        _checked_version(connection, path)
    except sqlite3.OperationalError as error:
        raise SetupError(f"cannot open {path}: {error}") from error
    return connection


def _require_sqlite() -> None:
    if sqlite3.sqlite_version_info < _OLDEST_SQLITE:
        oldest = ".".join(map(str, _OLDEST_SQLITE))
        raise SetupError(
            f"Python's SQLite is {sqlite3.sqlite_version}; kopt needs {oldest} or later:"
            " use a newer Python build"
        )


def _checked_version(connection: sqlite3.Connection, path: Path) -> int:
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version < 0:
        connection.close()
        raise SetupError(f"{path} has format {version}, which no kopt writes: it is damaged")
    if version > SCHEMA_VERSION:
        connection.close()
        raise SetupError(
            f"{path} has format {version}, this kopt reads up to {SCHEMA_VERSION}: upgrade kopt"
        )
    return version


def _write_version(connection: sqlite3.Connection, statements: Iterable[str]) -> None:
    # Single statements: executescript would commit the open transaction first.
    connection.execute("BEGIN IMMEDIATE")
    for statement in statements:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
    connection.execute("COMMIT")
