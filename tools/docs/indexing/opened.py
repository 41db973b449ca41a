"""Index files opened for one search; what was worked out of a file is kept for the next ones.

A file is known by path, inode, size and times of change. Threads never share a connection.
"""

import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path

from kopt.tools.docs.damage import read_error

from .collection import Collection, IndexCache
from .index_meta import connected, meta_of

_MOST_FILES = 4
"""Files that one process remembers; a server has two, tests have many."""
FileState = tuple[int, int, int, int]


@contextmanager
def opened(path: Path, is_own: bool) -> Generator[Collection]:
    """Open the index at `path` for one search.

    Raises:
        IndexFailure: It is no index, damaged, or cannot be read now.
        OSError: It cannot be looked at.
    """
    try:
        while True:
            state = file_state(path)
            cache = _known(path, state)
            connection = connected(path)
            if file_state(path) == state:
                break
            connection.close()  # replaced meanwhile: nothing that was known of it holds
    except sqlite3.Error as error:
        raise read_error(path, error) from error
    with closing(connection):
        yield Collection(connection, cache, is_own)


def in_memory(connection: sqlite3.Connection) -> Collection:
    """Return kopt's own documents in a database that lives as long as one search."""
    return Collection(connection, _cache(Path("memory"), connection), is_own=True)


def file_state(path: Path) -> FileState:
    """Return what changes whenever a file is replaced or written to."""
    state = path.stat()
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns


@lru_cache(maxsize=_MOST_FILES)
def _known(path: Path, _state: FileState) -> IndexCache:
    with closing(connected(path)) as connection:
        return _cache(path, connection)


def _cache(path: Path, connection: sqlite3.Connection) -> IndexCache:
    meta = meta_of(path, connection)
    stated = [one.source for one in meta.sources]
    rows = connection.execute("select distinct source from chunk order by source")
    return IndexCache(path, meta, tuple(dict.fromkeys((*stated, *(row[0] for row in rows)))))
