"""Index files that stay open from one search to the next: connections, and what they share.

A file is known by path, inode, size and times of change: one that was replaced or written to is
opened anew, and what was known of the old one is dropped. Threads never share a connection.
"""

import atexit
import sqlite3
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from kopt.tools.docs.damage import (
    LibraryDamaged,
    LibraryUnreadable,
    OwnIndexDamaged,
    damage,
    read_error,
)

from .collection import Collection, IndexCache
from .index_meta import meta_of, open_index, sources_in

MOST_FILES = 4
"""Files that one process keeps open; a server has two, tests have many."""
FileState = tuple[int, int, int, int]


@dataclass
class _OpenFile:
    state: FileState
    cache: IndexCache
    idle: list[sqlite3.Connection] = field(default_factory=list[sqlite3.Connection])

    def close(self) -> None:
        while self.idle:
            self.idle.pop().close()


_files: dict[Path, _OpenFile] = {}
_guard = threading.Lock()
"""Guards `_files` and of the lists of idle connections in it."""


@contextmanager
def opened(path: Path, expected: Mapping[str, str], is_own: bool) -> Generator[Collection]:
    """Open the index at `path`, whose meta must have what is `expected`, for one search.

    Raises:
        OwnIndexDamaged, LibraryDamaged: It is no index, damaged or another one.
        LibraryUnreadable, sqlite3.Error: It cannot be read now.
        OSError: It cannot be looked at.
    """
    try:
        state, connection, cache = _connected(path, expected)
    except sqlite3.Error as error:
        raise read_error(is_own, error) from error
    except ValueError as error:
        raise damage(is_own, error) from error
    try:
        yield Collection(connection, cache, is_own)
    except (OwnIndexDamaged, LibraryDamaged, LibraryUnreadable):
        connection.close()
        raise
    except BaseException:
        _returned(path, state, connection, cache)
        raise
    _returned(path, state, connection, cache)


def in_memory(connection: sqlite3.Connection) -> Collection:
    """Return kopt's own documents in a database that lives as long as one search."""
    return Collection(connection, _remembered(connection), is_own=True)


def file_state(path: Path) -> FileState:
    """Return what changes whenever a file is replaced or written to."""
    state = path.stat()
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


def close_all() -> None:
    """Close every idle connection; the next search opens what it needs."""
    with _guard:
        for file in _files.values():
            file.close()
        _files.clear()


atexit.register(close_all)


def _connected(
    path: Path, expected: Mapping[str, str]
) -> tuple[FileState, sqlite3.Connection, IndexCache]:
    """Return a connection with the state of its very file, and what is cache of that.

    A file that is replaced while it is opened is opened once more: nothing that was known of the
    one before holds for it.
    """
    while True:
        state = file_state(path)
        connection, cache = _taken(path, state)
        if connection and cache:
            return state, connection, cache
        connection = open_index(path, expected)
        try:
            if file_state(path) == state:
                return state, connection, cache or _remembered(connection)
        except BaseException:
            connection.close()
            raise
        connection.close()


def _taken(path: Path, state: FileState) -> tuple[sqlite3.Connection | None, IndexCache | None]:
    with _guard:
        file = _files.get(path)
        if file is None:
            return None, None
        if file.state != state:
            file.close()
            del _files[path]
            return None, None
        return (file.idle.pop() if file.idle else None), file.cache


def _returned(
    path: Path, state: FileState, connection: sqlite3.Connection, cache: IndexCache
) -> None:
    with _guard:
        file = _files.setdefault(path, _OpenFile(state, cache))
        if file.state != state:
            connection.close()
            return
        file.idle.append(connection)
        while len(_files) > MOST_FILES:
            _files.pop(next(iter(_files))).close()


def _remembered(connection: sqlite3.Connection) -> IndexCache:
    meta = meta_of(connection)
    stated = [one.source for one in sources_in(meta)]
    rows = connection.execute("select distinct source from chunk order by source")
    return IndexCache(meta, tuple(dict.fromkeys((*stated, *(row[0] for row in rows)))))
