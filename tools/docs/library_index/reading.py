"""The documents of the library index, one at a time and from end to end; searches are elsewhere."""

from collections.abc import Iterator
from contextlib import closing

from kopt.config.settings import Settings
from kopt.tools.docs.indexing.entries import records_in
from kopt.tools.docs.indexing.index_file import open_index
from kopt.tools.docs.records import Chunk

from .place import library_index_path


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
