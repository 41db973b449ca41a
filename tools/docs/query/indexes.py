"""The indexes that a search reads, open together; what is damaged is made again meanwhile."""

import sqlite3
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TypeVar

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.tools.docs.damage import LibraryDamaged, LibraryUnreadable, OwnIndexDamaged
from kopt.tools.docs.indexing.collection import Collection
from kopt.tools.docs.indexing.filters import Filters
from kopt.tools.docs.library_index.assembly import REBUILT, heal, opened_library
from kopt.tools.docs.own.index import OwnIndex, opened_own

Answer = TypeVar("Answer")
_MOST_OWN_FAILURES = 2
"""Failures of the file of kopt's own documents before its index is made in memory."""


@dataclass(frozen=True)
class OpenIndexes:
    """What a search reads."""

    own: OwnIndex
    library: Collection | None
    """The library index; None if it is not built or cannot be read."""
    said: str | None
    """One line on what happened to the library's index, if something did."""

    @property
    def built(self) -> tuple[str, ...]:
        """Return the sources of the library."""
        return self.library.cache.sources if self.library else ()

    @property
    def both(self) -> list[Collection]:
        """Return kopt's own documents, and the library if there is one."""
        return [self.own.collection, *([self.library] if self.library else [])]

    def defines(self, symbol: str) -> bool:
        """Say whether anything defines `symbol`, as `entries.symbol_name` writes it."""
        return any(one.by_name(symbol, Filters()) for one in self.both)

    def collections(self, filters: Filters) -> list[Collection]:
        """Return what `filters` leave something of; kopt's own documents if nothing."""
        left = [one for one in self.both if any(map(filters.admits, one.cache.sources))]
        return left or [self.own.collection]


def with_indexes(settings: Settings, use: Callable[[OpenIndexes], Answer]) -> Answer:
    """Return `use` of the open indexes.

    A damaged index is made again and `use` called once more; an index that is damaged again, or
    cannot be read, is done without.
    """
    own_failures: list[Exception] = []
    said: str | None = None
    has_library = True
    while True:
        try:
            with ExitStack() as stack:
                library = stack.enter_context(opened_library(settings)) if has_library else None
                own = stack.enter_context(opened_own(settings, own_failures))
                return use(OpenIndexes(own, library, said))
        except LibraryDamaged:
            has_library = said is None
            said = heal(settings)
            has_library = has_library and said == REBUILT
        except LibraryUnreadable as error:
            said, has_library = str(error), False
        except (OwnIndexDamaged, SetupError, OSError, sqlite3.Error) as error:
            if len(own_failures) == _MOST_OWN_FAILURES:
                raise
            own_failures.append(error)
