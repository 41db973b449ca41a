"""The indexes that a search reads, open together; what is damaged is made again meanwhile."""

import sqlite3
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import TypeVar

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.tools.docs.damage import IndexFailure
from kopt.tools.docs.indexing.collection import Collection
from kopt.tools.docs.indexing.filters import Filters
from kopt.tools.docs.indexing.index_meta import library_index_path
from kopt.tools.docs.library_index.assembly import REBUILT, heal, opened_library
from kopt.tools.docs.own.index import OwnIndex, opened_own

Answer = TypeVar("Answer")


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
    said: str | None = None
    has_library = True
    is_own_healed = False
    own_failure: Exception | None = None
    without = nullcontext[Collection | None](None)
    while True:
        try:
            with (
                opened_library(settings) if has_library else without as library,
                opened_own(settings, own_failure) as own,
            ):
                return use(OpenIndexes(own, library, said))
        except (IndexFailure, SetupError, OSError, sqlite3.Error) as error:
            failed = error if isinstance(error, IndexFailure) else None
            if failed and failed.path == library_index_path(settings):
                is_first = said is None
                said = heal(settings) if failed.is_damaged else str(failed)
                has_library = is_first and said == REBUILT
            elif failed and failed.is_damaged and not is_own_healed:
                is_own_healed = True
                with suppress(OSError):
                    failed.path.unlink()
            elif own_failure is None:
                own_failure = error
            else:
                raise
