"""The library index for one search: opened, made again once if it is damaged, or not there."""

from collections.abc import Callable
from typing import TypeVar

from kopt.config.settings import Settings
from kopt.tools.docs.damage import LibraryDamaged, LibraryUnreadable
from kopt.tools.docs.indexing.collection import Collection
from kopt.tools.docs.indexing.index_file import index_version
from kopt.tools.docs.indexing.open_indexes import opened
from kopt.tools.docs.library_index.healing import BUILDING, heal
from kopt.tools.docs.library_index.place import library_index_path

OUTDATED = (
    "the library index was made by another version of kopt and is not searched: run kopt docs"
    " build, which downloads nothing again"
)
Answer = TypeVar("Answer")


def with_library(
    settings: Settings, use: Callable[[Collection | None, str | None], Answer]
) -> Answer:
    """Return `use(library, said)`.

    Args:
        settings: Where the index lies.
        use: Gets None for the library if it is not built or cannot be read, and in one line what
            happened to it, if something did. It is called a second time if the index turns out to
            be damaged while it works.
    """
    path = library_index_path(settings)
    said: str | None = None
    for _attempt in range(2):
        if not path.exists():
            break
        try:
            with opened(path, {}, is_own=False) as library:
                if library.remembered.meta.get("version") == index_version():
                    return use(library, said)
            return use(None, OUTDATED)
        except LibraryDamaged:
            said = heal(settings)
            if said == BUILDING:
                break
        except LibraryUnreadable as error:
            return use(None, f"the library index cannot be read now ({error}): not searched")
    return use(None, said)
