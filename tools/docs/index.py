"""The index that fits the corpus as it is now: found, built, or healed.

One file a content in KOPT_HOME/cache/docs. The first process that needs it builds it, under a lock;
others wait. A damaged file is built again. Where nothing can be written, the index lives in memory.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from kopt.config.errors import SetupError
from kopt.config.settings import Settings, ensure_folder

from .chunk_sources import make_chunks
from .corpus import Corpus, read_corpus
from .index_file import fill, open_index, write_index

KEPT_INDEXES = 4
"""Of other contents, so that two installations that share KOPT_HOME do not build in turn."""
_ABANDONED_AFTER_S = 3600.0
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Index:
    """An open index."""

    connection: sqlite3.Connection
    place: str
    """Path of the file; `memory`."""
    corpus: Corpus
    degraded: str | None
    """What is missing from it and why."""


def with_index(settings: Settings, use: Callable[[Index], Answer]) -> Answer:
    """Return `use(index)`; if the file turns out to be damaged, once more with a new one."""
    corpus = read_corpus(settings)
    path = (settings.docs_cache / f"{corpus.key}.sqlite").absolute()
    try:
        try:
            return _used(path, corpus, use)
        except (sqlite3.DatabaseError, ValueError):  # damaged: what SQLite or a record refuses
            _build(path, corpus, replace=True)
            return _used(path, corpus, use)
    except (SetupError, OSError, sqlite3.Error) as error:
        return _used_in_memory(corpus, use, str(error))


def _used(path: Path, corpus: Corpus, use: Callable[[Index], Answer]) -> Answer:
    if not path.exists():
        _build(path, corpus, replace=False)
    with closing(open_index(path, corpus.key)) as connection:
        return use(Index(connection, str(path), corpus, _degraded(corpus)))


def _used_in_memory(corpus: Corpus, use: Callable[[Index], Answer], reason: str) -> Answer:
    with closing(sqlite3.connect(":memory:")) as connection:
        fill(connection, corpus.key, make_chunks(corpus))
        kept = f"the index could not be kept and was built for this search alone: {reason}"
        parts = [part for part in (kept, _degraded(corpus)) if part]
        return use(Index(connection, "memory", corpus, "; ".join(parts)))


def _build(path: Path, corpus: Corpus, replace: bool) -> None:
    """Build the index unless another process has done so meanwhile.

    Args:
        path: Where it goes.
        corpus: What goes into it.
        replace: True if the file that is there was found to be damaged.
    """
    seen = _state(path)
    with _lock(ensure_folder(path.parent)):
        if path.exists() and (not replace or _state(path) != seen):
            return
        write_index(path, corpus.key, make_chunks(corpus))
        _sweep(path)


def _state(path: Path) -> tuple[int, int] | None:
    try:
        state = path.stat()
    except FileNotFoundError:
        return None
    return state.st_ino, state.st_mtime_ns


@contextmanager
def _lock(folder: Path) -> Generator[None]:
    """Hold the lock of building; it ends with its process, however that ends."""
    descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _sweep(kept: Path) -> None:
    """Delete all but the newest indexes, and what killed builders left. Readers keep theirs."""
    others = [path for path in kept.parent.glob("*.sqlite") if path != kept]
    newest_first = sorted(others, key=lambda path: path.stat().st_mtime, reverse=True)
    for path in newest_first[KEPT_INDEXES - 1 :]:
        path.unlink(missing_ok=True)
    for path in kept.parent.glob(".new-*"):
        if path.stat().st_mtime < time.time() - _ABANDONED_AFTER_S:
            path.unlink(missing_ok=True)


def _degraded(corpus: Corpus) -> str | None:
    if not corpus.unread:
        return None
    return f"not searched, because unreadable: {', '.join(corpus.unread[:5])}"
