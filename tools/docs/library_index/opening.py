"""The library index for one search: opened, or made again if it is damaged."""

import sqlite3
from collections.abc import Generator
from contextlib import contextmanager

from kopt.config.errors import SetupError
from kopt.config.locks import file_lock
from kopt.config.settings import Settings
from kopt.tools.docs.damage import LibraryUnreadable, PartsDamaged
from kopt.tools.docs.indexing.collection import Collection
from kopt.tools.docs.indexing.index_file import index_version
from kopt.tools.docs.indexing.index_meta import library_folder, library_index_path, parts_path
from kopt.tools.docs.indexing.open_indexes import file_state, opened

from .assembly import assemble
from .parts import Parts

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


class _Building(Exception):
    """Another process holds the lock."""


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
    except _Building:
        return BUILDING
    except (OSError, sqlite3.Error, SetupError) as error:
        return (
            f"the library index is damaged and cannot be made again ({error}): run kopt docs build"
        )
    return REMOVED


def _give_up() -> None:
    raise _Building
