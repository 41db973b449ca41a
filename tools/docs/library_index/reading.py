"""The documents of the library index, one at a time and from end to end; searches are elsewhere."""

from collections.abc import Iterator
from contextlib import closing

from kopt.config.settings import Settings
from kopt.tools.docs.collection import Collection
from kopt.tools.docs.entries import records_in
from kopt.tools.docs.index_file import open_index
from kopt.tools.docs.open_library import with_library
from kopt.tools.docs.records import Chunk

from .place import library_index_path


def library_chunk(uid: str, settings: Settings) -> Chunk | None:
    """Return the function that `uid` is a piece of, whole; None if there is none."""

    def found(library: Collection | None, _said: str | None) -> Chunk | None:
        first = library.first_of(uid) if library else None
        return library.whole(first) if library and first is not None else None

    return with_library(settings, found)


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
