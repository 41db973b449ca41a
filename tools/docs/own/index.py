"""The index that fits the corpus as it is now: found or built.

One file a state of the corpus in KOPT_HOME/cache/docs. The first process that needs it builds it,
under a lock; others wait. Where nothing can be written, the index lives in memory.
"""

import sqlite3
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from kopt.config.files import ensure_folder, sweep_abandoned
from kopt.config.locks import file_lock
from kopt.config.settings import Settings
from kopt.tools.docs.indexing.collection import Collection
from kopt.tools.docs.indexing.entries import entry_of
from kopt.tools.docs.indexing.index_file import Sheet, fill, write_index
from kopt.tools.docs.indexing.index_meta import IndexMeta
from kopt.tools.docs.indexing.opened import in_memory, opened

from .corpus import Corpus, current_corpus
from .own_chunks import make_chunks

KEPT_INDEXES = 4
"""Index files that stay, so that two installations that share KOPT_HOME do not build in turn."""


@dataclass(frozen=True)
class OwnIndex:
    """The open index of kopt's own documents."""

    collection: Collection
    corpus: Corpus
    kept: str | None = None
    """Why it could not be kept, where that is so."""

    @property
    def degraded(self) -> str | None:
        """What is missing from it and why."""
        unread = ", ".join(self.corpus.unread[:5])
        reasons = (self.kept, unread and f"not searched, because unreadable: {unread}")
        return "; ".join(reason for reason in reasons if reason) or None


@contextmanager
def opened_own(settings: Settings, failure: Exception | None = None) -> Generator[OwnIndex]:
    """Open the index of kopt's own documents, built if need be.

    Args:
        settings: Where it lies and what it is made of.
        failure: Why its file cannot be had: then it is built in memory.

    Raises:
        IndexFailure, SetupError, OSError, sqlite3.Error: The index cannot be opened or read.
    """
    corpus = current_corpus(settings)
    if failure is not None:
        with closing(sqlite3.connect(":memory:")) as connection:
            fill(connection, IndexMeta(), _sheets(corpus))
            kept = f"the index could not be kept and was built for this search alone: {failure}"
            yield OwnIndex(in_memory(connection), corpus, kept)
        return
    path = (settings.docs_cache / f"{corpus.key}.sqlite").absolute()
    if not path.exists():
        with file_lock(ensure_folder(path.parent) / "lock"):
            if not path.exists():
                write_index(path, IndexMeta(), _sheets(corpus))
                _sweep(path)
    with opened(path, is_own=True) as collection:
        yield OwnIndex(collection, corpus)


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
    sweep_abandoned(kept.parent)
