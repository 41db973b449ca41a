"""Where the library index lies, what an index file says of itself, and whether it is whole."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from pydantic import TypeAdapter

from kopt.config.settings import Settings
from kopt.tools.docs.records import BuiltSource

_SOURCES = TypeAdapter(tuple[BuiltSource, ...])
_NAMES = TypeAdapter(tuple[str, ...])


def library_folder(settings: Settings) -> Path:
    """Return the folder of everything about the library index; it may not exist."""
    return (settings.docs_cache / "library").absolute()


def library_index_path(settings: Settings) -> Path:
    """Return where the index lies once it is built."""
    return library_folder(settings) / "index.sqlite"


def parts_path(settings: Settings) -> Path:
    """Return where the parts lie that it is built from."""
    return library_folder(settings) / "parts.sqlite"


def open_index(path: Path, expected: Mapping[str, str]) -> sqlite3.Connection:
    """Return a read-only connection to an index whose meta has what is `expected`.

    Raises:
        sqlite3.Error: There is no such file, or it is no index, damaged or another one.
    """
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, check_same_thread=False)
    try:
        if connection.execute("pragma schema_version").fetchone()[0] == 0:
            raise sqlite3.DatabaseError("the index is empty")
        meta = meta_of(connection)
        if meta.get("whole") != "yes" or not expected.items() <= meta.items():
            raise sqlite3.DatabaseError("the index is not the one that is wanted")
        count = connection.execute("select count(*) from chunk").fetchone()[0]
        if str(count) != meta.get("chunks"):
            raise sqlite3.DatabaseError("the index has lost rows")
    except BaseException:
        connection.close()
        raise
    return connection


def meta_of(connection: sqlite3.Connection) -> dict[str, str]:
    """Return what the index says of itself."""
    return dict(connection.execute("select key, value from meta"))


def read_meta(path: Path) -> dict[str, str]:
    """Return the meta of the index at `path`; nothing if there is none that can be read."""
    try:
        with closing(open_index(path, {})) as connection:
            return meta_of(connection)
    except sqlite3.Error:
        return {}


def sources_in(meta: Mapping[str, str]) -> tuple[BuiltSource, ...]:
    """Return the sources of the index whose meta this is.

    Raises:
        ValueError: It is damaged.
    """
    return _SOURCES.validate_json(meta.get("sources", "[]"))


def lost_synopses(path: Path) -> tuple[str, ...]:
    """Return the names that have a synopsis and no code in the index at `path`."""
    try:
        return _NAMES.validate_json(read_meta(path).get("synopses_without_code", "[]"))
    except ValueError:
        return ()


def built_sources(path: Path) -> tuple[BuiltSource, ...]:
    """Return the sources of the index at `path`; none if there is no index that can be read."""
    try:
        return sources_in(read_meta(path))
    except ValueError:
        return ()
