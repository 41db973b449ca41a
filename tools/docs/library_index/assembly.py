"""The library index: made of its parts in one go, opened for a search, made again after damage."""

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path

from kopt.config.errors import SetupError
from kopt.config.locks import file_lock
from kopt.config.settings import Settings
from kopt.tools.docs.build_records import BuildProgress, OnProgress
from kopt.tools.docs.chunking.duplicates import merged
from kopt.tools.docs.damage import LibraryUnreadable, PartsDamaged
from kopt.tools.docs.indexing.collection import Collection
from kopt.tools.docs.indexing.entries import record_of, records_in
from kopt.tools.docs.indexing.index_file import Sheet, index_version, write_index
from kopt.tools.docs.indexing.index_meta import (
    library_folder,
    library_index_path,
    open_index,
    parts_path,
)
from kopt.tools.docs.indexing.open_indexes import file_state, opened
from kopt.tools.docs.records import BuiltSource, Chunk
from kopt.tools.docs.vectors import model_name
from kopt.tools.docs.words.glossary import synopses_without_code

from .parts import Parts, SourceParts

REPORT_EVERY = 500
"""Documents between two calls of the progress callback."""


def index_key(sources: Sequence[SourceParts]) -> str:
    """Return what the index of `sources` depends on, as a hash."""
    digest = hashlib.sha256(f"{index_version()}\0{model_name()}".encode())
    for source in sources:
        digest.update("\0".join((repr(source.source), *source.keys)).encode())
    return digest.hexdigest()


def assemble(parts: Parts, path: Path, on_progress: OnProgress) -> None:
    """Write the index of all that `parts` are settled on to `path`, at once, over what is there."""
    sources = parts.sources()
    places: dict[str, tuple[str, int]] = {}
    chunks: list[Chunk] = []
    for source in sources:
        for key in source.keys:
            for number, entry in enumerate(parts.entries(key)):
                chunk = Chunk.model_validate_json(entry.record)
                if chunk.uid not in places:
                    places[chunk.uid] = (key, number)
                    chunks.append(chunk)
    before = {chunk.uid: chunk.also_at for chunk in chunks}
    kept = merged(chunks)
    entries = lru_cache(maxsize=1)(parts.entries)  # chunks of one file follow each other

    def sheets() -> Iterator[Sheet]:
        for done, chunk in enumerate(kept):
            if done % REPORT_EVERY == 0:
                on_progress(BuildProgress("write", None, done, len(kept)))
            key, number = places[chunk.uid]
            entry = entries(key)[number]
            if chunk.also_at != before[chunk.uid]:
                entry = entry._replace(record=record_of(chunk))
            yield Sheet(chunk, entry)

    counts = Counter(chunk.source for chunk in kept)
    facts = [
        BuiltSource(**one.source.facts(), files=len(one.keys), chunks=counts[one.source.key])
        for one in sources
    ]
    meta = {
        "key": index_key(sources),
        "version": index_version(),
        "model": model_name(),
        "sources": json.dumps([one.model_dump(mode="json") for one in facts]),
        "synopses_without_code": json.dumps(synopses_without_code(chunks)),
    }
    write_index(path, meta, sheets())
    on_progress(BuildProgress("write", None, len(kept), len(kept)))


def all_chunks(settings: Settings) -> Iterator[Chunk]:
    """Yield every piece in the index, in its order; nothing if it is not built.

    Raises:
        sqlite3.Error, ValueError: The index is damaged; a search makes it again.
    """
    path = library_index_path(settings)
    if not path.exists():
        return
    with closing(open_index(path, {})) as connection:
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
        LibraryDamaged: It turns out to be damaged, now or while it is read; see `heal`.
        LibraryUnreadable: It cannot be read now, or was made by another version of kopt.
    """
    path = library_index_path(settings)
    if not path.exists():
        yield None
        return
    with opened(path, {}, is_own=False) as library:
        if library.cache.meta.get("version") != index_version():
            raise LibraryUnreadable(OUTDATED)
        yield library


def heal(settings: Settings) -> str:
    """Make the index again unless another process has done so; return what happened, in one line.

    What cannot be made again is removed, so that the next search does not try once more. A search
    does not wait for a build.
    """
    path = library_index_path(settings)
    seen = file_state(path) if path.exists() else None
    try:
        with file_lock(library_folder(settings) / "lock", _give_up):
            if path.exists() and file_state(path) != seen:
                return REBUILT
            try:
                with Parts(parts_path(settings)) as parts:
                    if parts.sources():
                        assemble(parts, path, lambda _progress: None)
                        return REBUILT
            except PartsDamaged:
                parts_path(settings).unlink(missing_ok=True)
            path.unlink(missing_ok=True)
    except BlockingIOError:
        return BUILDING
    except (OSError, sqlite3.Error, SetupError) as error:
        return (
            f"the library index is damaged and cannot be made again ({error}): run kopt docs build"
        )
    return REMOVED


def _give_up() -> None:
    raise BlockingIOError
