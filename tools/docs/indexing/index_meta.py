"""Where the library index lies, and what an index says of itself."""

import sqlite3
from contextlib import closing
from pathlib import Path

from kopt.config.settings import Settings
from kopt.kernels.record import Record
from kopt.tools.docs.damage import IndexFailure, damage
from kopt.tools.docs.records import BuiltSource


class IndexMeta(Record):
    """The one row that is written last: an index without it is not whole."""

    chunks: int = 0
    key: str = ""
    """Hash of all that a library index depends on."""
    version: str = ""
    """`index_version()` of who wrote a library index."""
    model: str = ""
    """`model_name()` of its vectors."""
    sources: tuple[BuiltSource, ...] = ()
    """Libraries."""
    synopses_without_code: tuple[str, ...] = ()
    """Names that have a synopsis and no code in it."""


def library_folder(settings: Settings) -> Path:
    """Return the folder of everything about the library index; it may not exist."""
    return (settings.docs_cache / "library").absolute()


def library_index_path(settings: Settings) -> Path:
    """Return where the index lies once it is built."""
    return library_folder(settings) / "index.sqlite"


def connected(path: Path) -> sqlite3.Connection:
    """Return a read-only connection to the index at `path`.

    Raises:
        sqlite3.Error: It cannot be opened.
    """
    return sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False)


def meta_of(path: Path, connection: sqlite3.Connection) -> IndexMeta:
    """Return what the index at `path` says of itself.

    Raises:
        IndexFailure: It is no index, or has lost rows.
        sqlite3.Error: It cannot be read.
    """
    if connection.execute("pragma schema_version").fetchone()[0] == 0:
        raise damage(path, "the index is empty")
    try:
        ((facts,),) = connection.execute("select * from meta")
        meta = IndexMeta.model_validate_json(facts)
    except ValueError as error:  # also of another number of rows or columns
        raise damage(path, error) from error
    if connection.execute("select count(*) from chunk").fetchone() != (meta.chunks,):
        raise damage(path, "the index has lost rows")
    return meta


def read_meta(path: Path) -> IndexMeta:
    """Return the meta of the index at `path`; an empty one if there is none that can be read."""
    try:
        with closing(connected(path)) as connection:
            return meta_of(path, connection)
    except (sqlite3.Error, IndexFailure):
        return IndexMeta()
