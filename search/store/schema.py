"""How a run file is made and opened: one writer, any number of read-only viewers.

Only the writer ever checkpoints: SQLite 3.7.0 to 3.51.2 can corrupt a WAL file when two
connections write or checkpoint at the same moment, and Python's bundled library is usually
one of those.

Source:
    https://www.sqlite.org/wal.html, section "WAL-reset bug"
"""

import logging
import os
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from kopt.config.errors import SetupError

from .tables import CREATE, UPGRADES

logger = logging.getLogger(__name__)

SCHEMA_VERSION = 5
_OLDEST_SQLITE = (3, 38, 0)  # STRICT tables came with 3.37, built-in JSON with 3.38
_CANNOT_WRITE = (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL, sqlite3.SQLITE_CANTOPEN)
_JOURNAL_LIMIT_BYTES = 64 << 20


def open_writer(path: Path) -> sqlite3.Connection:
    """Open or create the run file for its one writer, who must hold the run's lock.

    A file of an older kopt is brought up to date, in one transaction.

    Raises:
        SetupError: The SQLite library is too old, the file is damaged, cannot be written, or was
            written by a newer kopt or by none.
    """
    _require_sqlite()
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))  # its journals get this mode
        return _prepared(sqlite3.connect(path, isolation_level=None, timeout=30.0), path)
    except OSError as error:
        raise SetupError(f"cannot write {path}: {error.strerror}") from error
    except sqlite3.DatabaseError as error:
        raise unreadable(path, error) from error


def _prepared(connection: sqlite3.Connection, path: Path) -> sqlite3.Connection:
    """Return the connection, set up for the one writer of a file of the present format."""
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if mode != "wal":
        logger.warning("%s: no WAL on this file system (%s); using a journal", path, mode)
        connection.execute("PRAGMA journal_mode = DELETE")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_LIMIT_BYTES}")
    version = _checked_version(connection, path)
    if version == 0:
        _write_version(connection, CREATE)
    elif version < SCHEMA_VERSION:
        steps = [UPGRADES[step] for step in range(version, SCHEMA_VERSION)]
        _write_version(connection, [statement for step in steps for statement in step])
    connection.execute("PRAGMA foreign_keys = ON")
    return connection


def open_viewer(path: Path) -> sqlite3.Connection:
    """Open the run file read-only: never blocks the writer, never checkpoints.

    The file of an older kopt stays as it is: what is new in `SCHEMA_VERSION` is missing in it.

    Where nothing can be written, on a read-only or full disk, what was not yet written back is not
    seen: SQLite would need a file beside it.

    Raises:
        SetupError: There is no such file, it is damaged, or was written by a newer kopt or by none.
    """
    _require_sqlite()
    try:
        if os.access(path.parent, os.W_OK):
            try:
                return _viewer(path, "mode=ro")
            except sqlite3.OperationalError as error:
                if _code(error) not in _CANNOT_WRITE:
                    raise
        return _viewer(path, "mode=ro&immutable=1")
    except sqlite3.DatabaseError as error:
        raise unreadable(path, error) from error


def _viewer(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.as_uri()}?{mode}", uri=True, isolation_level=None)
    try:
        _checked_version(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def unreadable(path: Path, error: Exception) -> SetupError:
    """Return what to raise where SQLite, or a row of it, says that the run file is no run's."""
    if isinstance(error, sqlite3.OperationalError) and _code(error) != sqlite3.SQLITE_ERROR:
        return SetupError(f"cannot open {path}: {error}")
    return SetupError(
        f"{path} is damaged ({_first_line(error)}): nothing was changed or deleted. Move the folder"
        f" {path.parent} away, or get back what can be read: sqlite3 {path.name} .recover"
    )


def damaged(connection: sqlite3.Connection, error: Exception) -> SetupError:
    """Return what to raise for rows of an open run file that no kopt has written."""
    return unreadable(Path(connection.execute("PRAGMA database_list").fetchone()[2]), error)


def _code(error: sqlite3.Error) -> int:
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


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
