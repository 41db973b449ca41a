"""The library index: made of its parts in one go, opened for a search, made again after damage."""

import hashlib
import sqlite3
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache

from kopt.config.errors import SetupError
from kopt.config.locks import try_lock
from kopt.config.settings import Settings
from kopt.tools.docs.build_records import BuildProgress, OnProgress
from kopt.tools.docs.chunking.duplicates import merged
from kopt.tools.docs.damage import IndexFailure
from kopt.tools.docs.indexing.collection import Collection
from kopt.tools.docs.indexing.entries import record_of, records_in
from kopt.tools.docs.indexing.index_file import Sheet, index_version, write_index
from kopt.tools.docs.indexing.index_meta import (
    IndexMeta,
    connected,
    library_folder,
    library_index_path,
)
from kopt.tools.docs.indexing.opened import file_state, opened
from kopt.tools.docs.records import BuiltSource, Chunk
from kopt.tools.docs.vectors import model_name
from kopt.tools.docs.words.glossary import synopses_without_code

from .parts import Parts, PartsDamaged, SourceParts

REPORT_EVERY = 500
"""Documents between two calls of the progress callback."""


def index_key(sources: Sequence[SourceParts]) -> str:
    """Return what the index of `sources` depends on, as a hash."""
    digest = hashlib.sha256(f"{index_version()}\0{model_name()}".encode())
    for source in sources:
        digest.update("\0".join((repr(source.source), *source.keys)).encode())
    return digest.hexdigest()


def assemble(settings: Settings, on_progress: OnProgress) -> None:
    """Write the index of all that the parts are settled on, at once, over what is there.

    Raises:
        PartsDamaged: One of them cannot be read.
    """
    parts = Parts(settings)
    sources = parts.sources()
    entries = lru_cache(maxsize=1)(parts.entries)  # chunks of one file follow each other
    places: dict[str, tuple[str, int]] = {}
    chunks: dict[str, Chunk] = {}
    for key in (key for source in sources for key in source.keys):
        for number, entry in enumerate(entries(key)):
            chunk = Chunk.model_validate_json(entry.record)
            places.setdefault(chunk.uid, (key, number))
            chunks.setdefault(chunk.uid, chunk)
    kept = merged(list(chunks.values()))

    def sheets() -> Iterator[Sheet]:
        for done, chunk in enumerate(kept):
            if done % REPORT_EVERY == 0:
                on_progress(BuildProgress("write", None, done, len(kept)))
            key, number = places[chunk.uid]
            entry = entries(key)[number]
            if chunk is not chunks[chunk.uid]:  # it has further places
                entry = entry._replace(record=record_of(chunk))
            yield Sheet(chunk, entry)

    counts = Counter(chunk.source for chunk in kept)
    meta = IndexMeta(
        key=index_key(sources),
        version=index_version(),
        model=model_name(),
        sources=tuple(
            BuiltSource(**one.source.facts(), files=len(one.keys), chunks=counts[one.source.key])
            for one in sources
        ),
        synopses_without_code=tuple(synopses_without_code(chunks.values())),
    )
    write_index(library_index_path(settings), meta, sheets())
    on_progress(BuildProgress("write", None, len(kept), len(kept)))


def all_chunks(settings: Settings) -> Iterator[Chunk]:
    """Yield every piece in the index, in its order; nothing if it is not built.

    Raises:
        sqlite3.Error, ValueError: The index is damaged; a search makes it again.
    """
    path = library_index_path(settings)
    if not path.exists():
        return
    with closing(connected(path)) as connection:
        for (block,) in connection.execute("select records from body order by block"):
            yield from map(Chunk.model_validate_json, records_in(block))


OUTDATED = (
    "the library index was made by another version of kopt and is not searched: run kopt docs"
    " build, which downloads nothing again"
)
REBUILT = "the library index was damaged and was made again from what its build had kept"
REMOVED = "the library index was damaged and was removed: run kopt docs build"
BUILDING = "the library index is being built; not searched now"


@contextmanager
def opened_library(settings: Settings) -> Generator[Collection | None]:
    """Open the library index for one search; None if it is not built.

    Raises:
        IndexFailure: It turns out to be damaged, now or while it is read, see `heal`; it cannot be
            read now, or was made by another version of kopt.
    """
    path = library_index_path(settings)
    if not path.exists():
        yield None
        return
    with opened(path, is_own=False) as library:
        if library.cache.meta.version != index_version():
            raise IndexFailure(path, OUTDATED, is_damaged=False)
        yield library


def heal(settings: Settings) -> str:
    """Make the index again unless another process has done so; return what happened, in one line.

    What cannot be made again is removed, so that the next search does not try once more. A search
    does not wait for a build.
    """
    path = library_index_path(settings)
    seen = file_state(path) if path.exists() else None
    try:
        lock = try_lock(library_folder(settings) / "lock")
        if lock is None:
            return BUILDING
        try:
            if path.exists() and file_state(path) != seen:
                return REBUILT
            if Parts(settings).sources():
                assemble(settings, lambda _progress: None)
                return REBUILT
        except PartsDamaged:
            Parts(settings).drop()
        finally:
            lock.release()
        path.unlink(missing_ok=True)
    except (OSError, sqlite3.Error, SetupError) as error:
        return (
            f"the library index is damaged and cannot be made again ({error}): run kopt docs build"
        )
    return REMOVED
