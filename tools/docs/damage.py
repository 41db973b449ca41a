"""What the reading of a damaged index raises; caught where the index can be made again.

An index that is whole and cannot be read now, because it is locked say, is never made again.
"""

import sqlite3

from kopt.config.errors import SetupError

_DAMAGED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_PRIMARY = 0xFF
"""The bits of SQLite's extended result codes that say the code itself."""


class OwnIndexDamaged(Exception):
    """The index of kopt's own documents is not to be read; `index.py` builds it again."""


class LibraryDamaged(Exception):
    """The library index is not to be read; `library_index/assembly.py` makes it again."""


class LibraryUnreadable(Exception):
    """The library index is whole and cannot be read now; the message is one line for the user."""


class PartsDamaged(SetupError):
    """What builds of the library index keep is damaged; a build does without it."""

    def __init__(self, reason: object) -> None:
        """Say what mends it."""
        super().__init__(
            f"what builds of the library index keep is damaged ({reason}): run kopt docs build"
        )


def is_damage(error: sqlite3.Error) -> bool:
    """Say whether the file is damaged or, in an error that kopt raised itself, another one."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return type(error) is sqlite3.DatabaseError
    return code & _PRIMARY in _DAMAGED


def damage(is_own: bool, reason: object) -> OwnIndexDamaged | LibraryDamaged:
    """Return what to raise for the damaged index of one kind."""
    return OwnIndexDamaged(str(reason)) if is_own else LibraryDamaged(str(reason))


def read_error(is_own: bool, error: sqlite3.Error) -> Exception:
    """Return what to raise for an index of one kind that could not be read."""
    if is_damage(error):
        return damage(is_own, error)
    if is_own:
        return error
    return LibraryUnreadable(f"the library index cannot be read now ({error}): not searched")
