"""The index that fits the corpus as it is now: found, built, or healed.

One file a content in KOPT_HOME/cache/docs. The first process that needs it builds it, under a lock;
others wait. A damaged file is built again. Where nothing can be written, the index lives in memory.
"""

import sqlite3
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kopt.config.files import ensure_folder
from kopt.config.locks import file_lock
from kopt.config.settings import Settings
from kopt.tools.docs.damage import OwnIndexDamaged
from kopt.tools.docs.indexing.collection import Collection
from kopt.tools.docs.indexing.entries import entry_of
from kopt.tools.docs.indexing.index_file import Sheet, fill, write_index
from kopt.tools.docs.indexing.open_indexes import file_state, in_memory, opened

from .corpus import Corpus, current_corpus
from .own_chunks import make_chunks

KEPT_INDEXES = 4
"""Index files that stay, so that two installations that share KOPT_HOME do not build in turn."""
_ABANDONED_AFTER_S = 3600.0


@dataclass(frozen=True)
class OwnIndex:
    """The open index of kopt's own documents."""

    collection: Collection
    place: str
    """Path of the file; `memory`."""
    corpus: Corpus
    degraded: str | None
    """What is missing from it and why."""


@contextmanager
def opened_own(settings: Settings, failures: Sequence[Exception]) -> Generator[OwnIndex]:
    """Open the index of kopt's own documents, built if need be.

    Args:
        settings: Where it lies and what it is made of.
        failures: What earlier attempts to open or read it met: after damage the file is built
            again, after anything else or further damage the index is built in memory.

    Raises:
        OwnIndexDamaged, SetupError, OSError, sqlite3.Error: The index cannot be opened or read.
    """
    corpus = current_corpus(settings)
    path = (settings.docs_cache / f"{corpus.key}.sqlite").absolute()
    is_damaged = bool(failures) and isinstance(failures[0], OwnIndexDamaged)
    if len(failures) > is_damaged:
        with closing(sqlite3.connect(":memory:")) as connection:
            fill(connection, _meta(corpus), _sheets(corpus))
            kept = (
                f"the index could not be kept and was built for this search alone: {failures[-1]}"
            )
            said = "; ".join(part for part in (kept, _degraded(corpus)) if part)
            yield OwnIndex(in_memory(connection), "memory", corpus, said)
        return
    if is_damaged or not path.exists():
        _build(path, corpus, replace=is_damaged)
    with opened(path, _meta(corpus), is_own=True) as collection:
        yield OwnIndex(collection, str(path), corpus, _degraded(corpus))


def _build(path: Path, corpus: Corpus, replace: bool) -> None:
    """Build the index unless another process has done so; `replace`: what is there is damaged."""
    seen = file_state(path) if path.exists() else None
    with file_lock(ensure_folder(path.parent) / "lock"):
        if path.exists() and (not replace or file_state(path) != seen):
            return
        write_index(path, _meta(corpus), _sheets(corpus))
        _sweep(path)


def _meta(corpus: Corpus) -> dict[str, str]:
    return {"key": corpus.key}


def _sheets(corpus: Corpus) -> Iterator[Sheet]:
    """Yield the rows of the index, each chunk with its terms; vectors are for code alone."""
    for chunk in make_chunks(corpus):
        heading = chunk.title.split(": ")[-1] if chunk.kind == "section" else ""
        place = f"{chunk.title} {chunk.source} {chunk.path}"
        yield Sheet(chunk, entry_of(chunk, chunk.symbol or heading, place, b""))


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
