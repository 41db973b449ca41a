"""What is raised for an index that cannot be read; caught where it can be made again."""

import sqlite3
from pathlib import Path

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_PRIMARY = 0xFF
"""The bits of SQLite's extended result codes that say the code itself."""


class IndexFailure(Exception):
    """The index at `path` cannot be read; the message is one line for the user."""

    def __init__(self, path: Path, reason: str, *, is_damaged: bool) -> None:
        """Say whether it is damaged, or whole and of no use now."""
        super().__init__(reason)
        self.path = path
        self.is_damaged = is_damaged


def damage(path: Path, reason: object) -> IndexFailure:
    """Return what to raise for a damaged index."""
    return IndexFailure(path, str(reason), is_damaged=True)


def read_error(path: Path, error: sqlite3.Error) -> IndexFailure:
    """Return what to raise for an index that SQLite could not read: one that is locked is whole."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    if code & _PRIMARY in _DAMAGED:
        return damage(path, error)
    place = f"{path.parent.name}/{path.name}"
    return IndexFailure(path, f"{place} cannot be read now ({error})", is_damaged=False)
