"""One open index as the ranking asks it: lists of chunks by words, by name, by meaning.

All connections to one file share what is worked out once: vectors, counts, which rows a filter
leaves.
"""

import math
import sqlite3
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from .damage import damage
from .entries import unpacked
from .filters import Filters, conditions
from .library_index.vectors import CardVectors, card_vectors
from .records import Chunk
from .weights import WEIGHTS
from .whole_functions import whole

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_REMEMBERED = 4096
"""Phrases, and filters, whose answers are kept before they are forgotten together."""
MOST_LIKE = 2000
"""Words that a misspelled one is compared with."""
LEAST_IDF = 1e-6
"""Of FTS5's bm25: a phrase that most documents have counts next to nothing, and never less."""
_FIELD_WEIGHTS = ", ".join(str(weight) for weight in WEIGHTS.fields)
Scored = list[tuple[int, float]]
"""Chunk ids with their scores, best first."""


class Facts(NamedTuple):
    """What the ranking weighs a chunk by."""

    chunk_id: int
    first: int
    """Id of the first piece of the same function."""
    source: str
    path: str
    kind: str
    quality: float


@dataclass
class Remembered:
    """What all connections to one index file share. Entries are added or all dropped."""

    meta: Mapping[str, str]
    sources: tuple[str, ...]
    counts: dict[str, int] = field(default_factory=dict[str, int])
    frequencies: dict[str, Scored] = field(default_factory=dict[str, Scored])
    rows: "dict[Filters, NDArray[np.int64]]" = field(default_factory=lambda: {})
    vectors: "tuple[CardVectors | None] | None" = None
    """In a tuple once they were looked for."""

    @property
    def chunks(self) -> int:
        """Return how many there are."""
        return int(self.meta["chunks"])


@dataclass(frozen=True)
class Collection:
    """An open index, of one thread at a time."""

    connection: sqlite3.Connection
    remembered: Remembered
    is_own: bool
    """True for kopt's own documents, False for the library."""

    def by_words(self, phrases: Sequence[str], filters: Filters) -> Scored:
        """Return the best by BM25 of what has any of `phrases`."""
        condition, values = conditions(filters, self.remembered.sources)
        join = f"join chunk on chunk.id = fts.rowid where {condition} and" if condition else "where"
        rows = self._select(
            f"select fts.rowid, -bm25(fts, {_FIELD_WEIGHTS}) as score from fts {join} fts match ?"
            f" order by score desc, fts.rowid limit {WEIGHTS.depth}",
            [*values, " OR ".join(map(_quoted, phrases))],
        )
        return rows

    def by_words_of(self, other: "Collection", phrases: Sequence[str], filters: Filters) -> Scored:
        """Return what `by_words` would, if these chunks stood in `other`: comparable with its list.

        BM25 is a sum over phrases of the phrase's weight in the collection times its share in the
        document; only the former differs.
        """
        scores: dict[int, float] = {}
        for phrase in phrases:
            weight = other.idf(phrase)
            for chunk_id, share in self._shares(phrase):
                scores[chunk_id] = scores.get(chunk_id, 0.0) + weight * share
        allowed = self._allowed(filters)
        left = [(at, score) for at, score in scores.items() if allowed is None or at in allowed]
        return sorted(left, key=lambda one: (-one[1], one[0]))[: WEIGHTS.depth]

    def by_name(self, name: str, filters: Filters) -> Sequence[int]:
        """Return what defines exactly `name`."""
        condition, values = conditions(filters, self.remembered.sources)
        rows = self._select(
            "select chunk.id from symbol join chunk on chunk.id = symbol.chunk where name = ?"
            f"{' and ' if condition else ''}{condition} order by chunk.id limit {WEIGHTS.depth}",
            [name, *values],
        )
        return [row[0] for row in rows]

    def by_uid(self, uids: Sequence[str], filters: Filters) -> Sequence[int]:
        """Return those of `uids` that there are, in their order."""
        condition, values = conditions(filters, self.remembered.sources)
        rows = self._select(
            f"select uid, id from chunk where uid in ({','.join('?' * len(uids))})"
            f"{' and ' if condition else ''}{condition}",
            [*uids, *values],
        )
        ids = dict(rows)
        return [ids[uid] for uid in uids if uid in ids]

    def by_meaning(self, query: "NDArray[np.float32]", filters: Filters) -> Scored:
        """Return the nearest by cosine of their cards; nothing without vectors."""
        vectors = self.vectors()
        return vectors.nearest(query, self._rows(filters), WEIGHTS.depth) if vectors else []

    def facts(self, ids: Iterable[int]) -> list[Facts]:
        """Return what the ranking weighs `ids` by."""
        numbers = list(ids)
        rows = self._select(
            "select id, first, source, path, kind, quality from chunk"
            f" where id in ({','.join('?' * len(numbers))})",
            numbers,
        )
        return [Facts(*row) for row in rows]

    def pieces(self, first: int) -> list[Chunk]:
        """Return the pieces of one function in order; mostly it is one."""
        rows = self._select(
            "select record from body where id in (select id from chunk where id = ?1 union"
            " select id from chunk where first = ?1 and first <> id) order by id",
            (first,),
        )
        try:
            return [unpacked(row[0]) for row in rows]
        except ValueError as error:
            raise damage(self.is_own, error) from error

    def whole(self, first: int) -> Chunk:
        """Return the function whose first piece is `first`, or a document."""
        return whole(self.pieces(first))

    def first_of(self, uid: str) -> int | None:
        """Return the id of the first piece of the function that `uid` is a piece of."""
        rows = self._select("select first from chunk where uid = ?", (uid,))
        return rows[0][0] if rows else None

    def uids(self, name: str = "") -> list[str]:
        """Return uids with `name` in them, in their order; all without one."""
        rows = self._select(
            f"select uid from chunk where instr(uid, ?) order by id limit {MOST_LIKE}", (name,)
        )
        return [row[0] for row in rows]

    def size(self, source: str) -> int:
        """Return how many chunks a source has."""
        return int(self._select("select count(*) from chunk where source = ?", (source,))[0][0])

    def has(self, terms: Sequence[str]) -> bool:
        """Say whether any chunk has any of `terms`."""
        return any(map(self._count_of_term, terms))

    def words_like(self, word: str) -> list[str]:
        """Return words that begin as `word` does and are about as long, the frequent ones first."""
        rows = self._select(
            "select word from word where word >= ?1 and word < ?2 and length(word) between ?3 and"
            f" ?4 order by chunks desc, word limit {MOST_LIKE}",
            (word[:1], f"{word[:1]}\U0010ffff", len(word) - 3, len(word) + 3),
        )
        return [row[0] for row in rows]

    def vectors(self) -> CardVectors | None:
        """Return the vectors; None if the index has none, or they cannot be loaded."""
        if self.remembered.vectors is None:
            ((rows,),) = self._select("select rows from vector")
            self.remembered.vectors = (card_vectors(rows),)
        return self.remembered.vectors[0]

    def count(self, phrase: str) -> int:
        """Return how many chunks have every term of `phrase`, at most: that of its rarest term."""
        return min(map(self._count_of_term, phrase.split()), default=0)

    def idf(self, phrase: str) -> float:
        """Return the weight that BM25 gives a phrase here."""
        return _idf(self.remembered.chunks, self.count(phrase))

    def _select(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        try:
            return self.connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise damage(self.is_own, error) from error

    def _count_of_term(self, term: str) -> int:
        known = self.remembered.counts.get(term)
        if known is not None:
            return known
        found = self._select("select doc from temp.term where term = ?", (term,))
        _make_room(self.remembered.counts)
        return self.remembered.counts.setdefault(term, found[0][0] if found else 0)

    def _shares(self, phrase: str) -> Scored:
        """Return for each chunk with `phrase` the factor of its idf in BM25."""
        known = self.remembered.frequencies.get(phrase)
        if known is not None:
            return known
        rows = self._select(
            f"select rowid, -bm25(fts, {_FIELD_WEIGHTS}) from fts where fts match ?",
            (_quoted(phrase),),
        )
        idf = _idf(self.remembered.chunks, len(rows))
        _make_room(self.remembered.frequencies)
        shares = [(chunk_id, score / idf) for chunk_id, score in rows]
        return self.remembered.frequencies.setdefault(phrase, shares)

    def _allowed(self, filters: Filters) -> frozenset[int] | None:
        condition, values = conditions(filters, self.remembered.sources)
        if not condition:
            return None
        rows = self._select(f"select id from chunk where {condition}", values)
        return frozenset(row[0] for row in rows)

    def _rows(self, filters: Filters) -> "NDArray[np.int64] | None":
        """Return the ids that `filters` leave, ascending; None for all."""
        import numpy as np

        known = self.remembered.rows.get(filters)
        if known is not None:
            return known
        allowed = self._allowed(filters)
        if allowed is None:
            return None
        _make_room(self.remembered.rows)
        rows = np.array(sorted(allowed), np.int64)
        return self.remembered.rows.setdefault(filters, rows)


def _idf(chunks: int, having: int) -> float:
    """Return the inverse document frequency of FTS5's bm25."""
    return max(math.log((chunks - having + 0.5) / (having + 0.5)), LEAST_IDF)


def _make_room(kept: MutableMapping[Any, Any]) -> None:
    if len(kept) >= MOST_REMEMBERED:
        kept.clear()


def _quoted(phrase: str) -> str:
    return f'"{phrase}"'
