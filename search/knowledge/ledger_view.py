"""The ledger of a base for reading alone: on a read-only or full disk, or before there is one."""

import sqlite3
from pathlib import Path

from .ledger import FILE_NAME, checked_version, guarded, prepare


def view_ledger(folder: Path) -> sqlite3.Connection:
    """Open the ledger in `folder` without writing to it; where there is none, an empty one.

    Raises:
        SetupError: It was written by a newer kopt or by none, or is damaged.
        InfraError: Other processes kept it busy.
    """
    path = folder / FILE_NAME
    with guarded(path):
        if not path.exists():
            return _empty()
        connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)
        try:
            is_empty = checked_version(connection, path) == 0
        except BaseException:
            connection.close()
            raise
    if not is_empty:
        return connection
    connection.close()  # the disk was full when it was made
    return _empty()


def _empty() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    prepare(connection, Path(":memory:"))
    connection.execute("PRAGMA query_only = ON")
    return connection
