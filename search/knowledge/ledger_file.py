"""`samples.sqlite`: the truth of a base. What was learned is added, never changed nor deleted.

Several processes may learn at once. The file keeps a rollback journal and no WAL, because SQLite
3.7.0 to 3.51.2 can corrupt a WAL that two connections write at the same moment.

Source:
    https://www.sqlite.org/wal.html, section "WAL-reset bug"
"""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex

from pydantic import ValidationError

from kopt.config.errors import InfraError, SetupError
from kopt.search.storage.transaction import Transaction

FILE_NAME = "samples.sqlite"
FORMAT = 1
_BUSY_S = 30.0
_CREATE = (
    "CREATE TABLE base (one INTEGER PRIMARY KEY CHECK (one = 1), origin TEXT NOT NULL) STRICT",
    """CREATE TABLE change (
        version INTEGER PRIMARY KEY,
        kind TEXT NOT NULL CHECK (kind IN ('learn', 'edit', 'import', 'forget')),
        at_us INTEGER NOT NULL
    ) STRICT""",
    """CREATE TABLE sample (
        place INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        version INTEGER NOT NULL REFERENCES change (version),
        run TEXT NOT NULL,
        state TEXT NOT NULL,
        document TEXT NOT NULL CHECK (json_valid(document))
    ) STRICT""",
    "CREATE INDEX sample_run ON sample (run)",
    """CREATE TABLE edit (
        place INTEGER PRIMARY KEY,
        version INTEGER NOT NULL REFERENCES change (version),
        document TEXT NOT NULL CHECK (json_valid(document))
    ) STRICT""",
    """CREATE TABLE import (
        place INTEGER PRIMARY KEY,
        version INTEGER NOT NULL REFERENCES change (version),
        document TEXT NOT NULL CHECK (json_valid(document))
    ) STRICT""",
    """CREATE TABLE revocation (
        kind TEXT NOT NULL CHECK (kind IN ('sample', 'origin')),
        target TEXT NOT NULL,
        version INTEGER NOT NULL REFERENCES change (version),
        PRIMARY KEY (kind, target)
    ) STRICT""",
    # What follows can be made again from the tables above.
    "CREATE TABLE rendering (digest TEXT PRIMARY KEY) STRICT",
    """CREATE TABLE snapshot (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        seed TEXT NOT NULL,
        rendering TEXT NOT NULL REFERENCES rendering (digest),
        document TEXT NOT NULL
    ) STRICT""",
)


class LedgerBusy(InfraError):
    """Other processes have kept the ledger busy for longer than the time-out."""


def open_ledger(folder: Path) -> sqlite3.Connection:
    """Open or create the ledger of the base in `folder`.

    Raises:
        SetupError: It was written by a newer kopt or by none, is damaged or cannot be written.
        InfraError: Other processes kept it busy.
    """
    path = folder / FILE_NAME
    with guarded(path):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # the journals get this mode
        connection = sqlite3.connect(path, isolation_level=None, timeout=_BUSY_S)
        try:
            _prepare(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = FULL")
    if _version(connection, path) == 0:
        with Transaction(connection):
            if _version(connection, path) == 0:  # unless another process was faster
                for statement in _CREATE:
                    connection.execute(statement)
                # A letter first: a YAML key that is all digits would be a number.
                connection.execute("INSERT INTO base VALUES (1, ?)", (f"k{token_hex(4)}",))
                connection.execute(f"PRAGMA user_version = {FORMAT}")
    connection.execute("PRAGMA foreign_keys = ON")


def _version(connection: sqlite3.Connection, path: Path) -> int:
    # In this order: a process that creates the tables in between has set the version with them.
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > FORMAT:
        raise SetupError(
            f"{path} has format {version}, this kopt reads up to {FORMAT}: upgrade kopt"
        )
    if version < 0 or (version == 0 and tables):
        raise SetupError(f"{path} is no file of kopt's: {_advice(path)}")
    return int(version)


@contextmanager
def guarded(path: Path) -> Generator[None]:
    """Turn what SQLite and damaged rows raise into errors that say what to do.

    Raises:
        SetupError: The file is damaged or cannot be written.
        LedgerBusy: Other processes kept it busy.
    """
    try:
        yield
    except (sqlite3.IntegrityError, sqlite3.ProgrammingError):  # bugs of kopt
        raise
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise LedgerBusy(f"{path} was busy for {_BUSY_S:g} s: try again") from error
        raise SetupError(f"{path} cannot be used: {error}") from error
    except sqlite3.DatabaseError as error:
        raise SetupError(f"{path} is damaged ({error}): {_advice(path)}") from error
    except ValidationError as error:
        raise SetupError(f"{path} has a damaged row: {_advice(path)}") from error
    except OSError as error:
        raise SetupError(f"{error.filename or path} cannot be used: {error.strerror}") from error


def _advice(path: Path) -> str:
    folder = path.parent
    return (
        f"nothing was changed or deleted. Rename {FILE_NAME} and base.yaml in {folder}, e.g. to"
        f" damaged.sqlite and old.yaml; then `kopt kb import {folder / 'old.yaml'}` gives back what"
        " was known"
    )
