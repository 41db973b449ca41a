"""What a library index says of itself, read without opening it for a search."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from pydantic import TypeAdapter

from kopt.tools.docs.indexing.index_file import meta_of, open_index

from .build_records import BuiltSource

_SOURCES = TypeAdapter(tuple[BuiltSource, ...])
_NAMES = TypeAdapter(tuple[str, ...])


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
