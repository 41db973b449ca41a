"""The index out of its parts: duplicates merged, written in one go. Nothing is chunked here."""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import lru_cache
from pathlib import Path

from kopt.config.settings import Settings
from kopt.tools.docs.build_records import BuildProgress, OnProgress
from kopt.tools.docs.chunking.duplicates import merged
from kopt.tools.docs.indexing.entries import record_of, records_in
from kopt.tools.docs.indexing.index_file import Sheet, index_version, write_index
from kopt.tools.docs.indexing.index_meta import library_index_path, open_index
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
    """Write the index of everything that `parts` are settled on to `path`.

    Args:
        parts: What it is made of.
        path: Where it goes, in place of what is there, all at once.
        on_progress: Told the documents that are written and that there are.
    """
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
