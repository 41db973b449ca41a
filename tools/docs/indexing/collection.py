"""One open index as the ranking asks it: lists of chunks by words, by name, by meaning.

All connections to one file share what is worked out once: vectors, counts, which rows a filter
leaves.
"""

import sqlite3
from array import array
from collections.abc import Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from kopt.tools.docs.chunking.sizes import OVERLAP_LINES
from kopt.tools.docs.damage import damage, read_error
from kopt.tools.docs.records import Chunk
from kopt.tools.docs.vectors import DIMENSIONS, ChunkVectors, chunk_vectors
from kopt.tools.docs.weights import WEIGHTS

from .entries import records_in
from .filters import Filters, conditions
from .index_file import block_number
from .index_meta import IndexMeta
from .postings import NO_POSTINGS, Postings, Scored, best_scored, idf, unpacked_postings

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MOST_REMEMBERED = 4096
"""Phrases, and filters, whose answers are kept before they are forgotten together."""
MOST_UIDS = 1000
"""Looked up at once; a service may answer with any number, SQLite takes so many values."""
_ID_BYTES = 4
MOST_LIKE = 2000
"""Words that a misspelled one is compared with."""


class ChunkFacts(NamedTuple):
    """What the ranking weighs a chunk by."""

    chunk_id: int
    first: int
    """Id of the first piece of the same function."""
    source: str
    path: str
    kind: str
    quality: float


@dataclass
class IndexCache:
    """What all connections to one index file share. Entries are added or all dropped."""

    path: Path
    meta: IndexMeta
    sources: tuple[str, ...]
    postings: dict[str, Postings] = field(default_factory=dict[str, Postings])
    rows: "dict[Filters, array[int]]" = field(default_factory=lambda: {})
    vectors: dict[str, ChunkVectors | None] = field(default_factory=lambda: {})
    """Loaded vectors, by the statement that finds them; None where there are none."""


@dataclass(frozen=True)
class Collection:
    """An open index, of one thread at a time."""

    connection: sqlite3.Connection
    cache: IndexCache
    is_own: bool
    """True for kopt's own documents, False for the library."""

    def by_words(self, phrases: Sequence[str], filters: Filters, of: "Collection") -> Scored:
        """Return the best by BM25 of what has any of `phrases`, each of one or more terms.

        How rare a phrase is, the collection `of` says: lists made with the same one compare.
        """
        weighted = [(of.idf(phrase), self.postings(phrase)) for phrase in phrases]
        return best_scored(weighted, self._rows(filters), WEIGHTS.depth)

    def by_subject(self, tags: Sequence[str], filters: Filters) -> Scored:
        """Return the best of what is about any of `tags`, the rare ones counting most."""
        found = [self._list("select chunks, list from tag where tag = ?", tag) for tag in tags]
        weighted = [(idf(self.cache.meta.chunks, len(one.ids)), one) for one in found]
        return best_scored(weighted, self._rows(filters), WEIGHTS.depth)

    def by_name(self, name: str, filters: Filters) -> Sequence[int]:
        """Return what defines exactly `name`."""
        condition, values = conditions(filters, self.cache.sources)
        rows = self._select(
            "select chunk.id from symbol join chunk on chunk.id = symbol.chunk where name = ?"
            f"{' and ' if condition else ''}{condition} order by chunk.id limit {WEIGHTS.depth}",
            [name, *values],
        )
        return [row[0] for row in rows]

    def by_uid(self, uids: Sequence[str], filters: Filters) -> Sequence[int]:
        """Return those of the first MOST_UIDS of `uids` that there are, in their order."""
        uids = uids[:MOST_UIDS]
        condition, values = conditions(filters, self.cache.sources)
        rows = self._select(
            f"select uid, id from chunk where uid in ({','.join('?' * len(uids))})"
            f"{' and ' if condition else ''}{condition}",
            [*uids, *values],
        )
        ids = dict(rows)
        return [ids[uid] for uid in uids if uid in ids]

    def by_meaning(self, query: "NDArray[np.float32]", filters: Filters) -> Scored:
        """Return the nearest by cosine of their cards; nothing without vectors."""
        return self._nearest("select null, rows from vector", query, filters)

    def by_synopsis(self, query: "NDArray[np.float32]", filters: Filters) -> Scored:
        """Return the nearest by cosine of what they are said to do, of those of which it is."""
        return self._nearest("select ids, rows from synopsis", query, filters)

    def postings(self, phrase: str) -> Postings:
        """Return the chunks that have `phrase`, and its shares in them."""
        known = self.cache.postings.get(phrase)
        if known is None:
            known = self._list("select chunks, list from posting where phrase = ?", phrase)
            _make_room(self.cache.postings)
            self.cache.postings[phrase] = known
        return known

    def idf(self, phrase: str) -> float:
        """Return how much a phrase weighs here, because it is rare."""
        return idf(self.cache.meta.chunks, len(self.postings(phrase).ids))

    def facts(self, ids: Iterable[int]) -> list[ChunkFacts]:
        """Return what the ranking weighs `ids` by."""
        numbers = list(ids)
        rows = self._select(
            "select id, first, source, path, kind, quality from chunk"
            f" where id in ({','.join('?' * len(numbers))})",
            numbers,
        )
        return [ChunkFacts(*row) for row in rows]

    def pieces(self, first: int) -> list[Chunk]:
        """Return the pieces of one function in order; mostly it is one."""
        rows = self._select(
            "select id from chunk where id = ? union"
            " select id from chunk where first = ? and first <> id order by id",
            (first, first),
        )
        return self._chunks([row[0] for row in rows])

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
        return any(self.postings(term).ids for term in terms)

    def words_like(self, word: str) -> list[str]:
        """Return words that begin as `word` does and are about as long, the frequent ones first."""
        rows = self._select(
            "select word from word where word >= ? and word < ? and length(word) between ? and"
            f" ? order by chunks desc, word limit {MOST_LIKE}",
            (word[:1], f"{word[:1]}\U0010ffff", len(word) - 3, len(word) + 3),
        )
        return [row[0] for row in rows]

    def _nearest(self, found_by: str, query: "NDArray[np.float32]", filters: Filters) -> Scored:
        """Return the nearest of the vectors that a statement finds; nothing without vectors."""
        if found_by not in self.cache.vectors:
            ((ids, rows),) = self._select(found_by)
            count = self.cache.meta.chunks if ids is None else len(ids) // _ID_BYTES
            if len(rows) != count * DIMENSIONS and (ids or rows):
                raise damage(self.cache.path, "the index has lost vectors")
            self.cache.vectors[found_by] = chunk_vectors(rows, ids)
        vectors = self.cache.vectors[found_by]
        return vectors.nearest(query, self._rows(filters), WEIGHTS.depth) if vectors else []

    def _chunks(self, ids: Sequence[int]) -> list[Chunk]:
        """Return the chunks of `ids`; pieces of one function mostly share a block."""
        blocks: dict[int, list[str]] = {}
        found: list[Chunk] = []
        try:
            for block, place in map(block_number, ids):
                if block not in blocks:
                    query = "select records from body where block = ?"
                    ((records,),) = self._select(query, (block,))
                    blocks[block] = records_in(records)
                found.append(Chunk.model_validate_json(blocks[block][place]))
        except (ValueError, IndexError) as error:
            raise damage(self.cache.path, error) from error
        return found

    def _list(self, statement: str, phrase: str) -> Postings:
        rows = self._select(statement, (phrase,))
        try:
            return unpacked_postings(*rows[0]) if rows else NO_POSTINGS
        except ValueError as error:
            raise damage(self.cache.path, error) from error

    def _select(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        try:
            return self.connection.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            raise read_error(self.cache.path, error) from error

    def _rows(self, filters: Filters) -> "array[int] | None":
        """Return the ids that `filters` leave, ascending; None for all."""
        condition, values = conditions(filters, self.cache.sources)
        if not condition:
            return None
        known = self.cache.rows.get(filters)
        if known is None:
            rows = self._select(f"select id from chunk where {condition} order by id", values)
            known = array("i", [row[0] for row in rows])
            _make_room(self.cache.rows)
            self.cache.rows[filters] = known
        return known


def _make_room(kept: MutableMapping[Any, Any]) -> None:
    if len(kept) >= MOST_REMEMBERED:
        kept.clear()


def whole(pieces: Sequence[Chunk]) -> Chunk:
    """Return the chunk that `pieces` make up: overlapping ones of one function, in order."""
    first, *others = pieces
    if not others:
        return first
    lines = first.body.split("\n")
    for piece in others:
        further = piece.body.split("\n")
        lines += further[_overlap(lines, further) :]
    return first.model_copy(
        update={
            "body": "\n".join(lines),
            "end_line": pieces[-1].end_line,
            "tags": _union([piece.tags for piece in pieces]),
            "arch": _union([piece.arch for piece in pieces]),
            "dtype": _union([piece.dtype for piece in pieces]),
        }
    )


def _overlap(lines: Sequence[str], further: Sequence[str]) -> int:
    """Return how many of the last lines are the first ones of what follows.

    By their text: a body may leave out lines of its range, such as the methods of a class.
    """
    longest = min(len(lines), len(further), OVERLAP_LINES)
    return next((at for at in range(longest, 0, -1) if lines[-at:] == further[:at]), 0)


def _union(names: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for some in names for name in some))
