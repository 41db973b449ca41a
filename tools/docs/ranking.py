"""Which chunks answer a query, best first: lists by BM25 over fields, fused by rank.

One list for all terms, one for whole names if the query has any, and at half weight one with the
lexicon's expansions. Kinds and sources weigh in, and a file
that was picked already counts less. Method and most constants: reciprocal rank fusion (Cormack,
Clarke, Buettcher 2009, k = 60), BM25 as SQLite's FTS5 has it.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FIELD_WEIGHTS = (3.0, 2.0, 1.0, 1.0, 1.0)
"""symbol, place, comment, tags, code."""
DEPTH = 200
RANK_OFFSET = 60
EXPANSION_WEIGHT = 0.5
FILE_SATURATION = 0.8
EXACT_SYMBOL = 3.0
KIND_PRIOR = {
    "kernel": 1.0,
    "device": 1.0,
    "note": 1.0,
    "section": 1.0,
    "entry": 1.0,
    "problem": 1.0,
    "gpu": 1.0,
    "plan": 0.92,
    "struct": 0.92,
    "overview": 0.85,
    "host": 0.8,
    "decl": 0.7,
}


@dataclass(frozen=True)
class Filters:
    """What may be an answer at all."""

    sources: tuple[str, ...]
    kind: str | None = None
    arch: str | None = None
    """As a tag: sm90."""
    dtype: str | None = None


@dataclass(frozen=True)
class Sought:
    """A query as the index is asked."""

    text: str
    """As it was asked, to find the definition of a symbol."""
    terms: Sequence[str]
    """Index terms of all words."""
    names: Sequence[str]
    """Terms that stand for whole names."""
    phrases: Sequence[str]
    """What the words stand for besides."""


@dataclass(frozen=True)
class Ranked:
    """One answer before it is quoted."""

    chunk_id: int
    score: float


@dataclass(frozen=True)
class Ranking:
    """What matches a query, as far as it was asked for."""

    matches: int
    """Of all lists, each DEPTH deep at most."""
    best: Sequence[Ranked]
    """Best first."""


@dataclass(frozen=True)
class _Row:
    chunk_id: int
    path: str
    kind: str
    quality: float
    symbol: str | None


def ranked(
    connection: sqlite3.Connection,
    sought: Sought,
    filters: Filters,
    most: int,
) -> Ranking:
    """Return the `most` best of the chunks that match."""
    lists = [(1.0, _matching(connection, sought.terms, filters))]
    if sought.names:
        lists.append((1.0, _matching(connection, sought.names, filters)))
    if sought.phrases:
        both = [*sought.terms, *sought.phrases]
        lists.append((EXPANSION_WEIGHT, _matching(connection, both, filters)))
    scores: dict[int, float] = {}
    rows: dict[int, _Row] = {}
    for weight, found in lists:
        for rank, row in enumerate(found, start=1):
            rows[row.chunk_id] = row
            scores[row.chunk_id] = scores.get(row.chunk_id, 0.0) + weight / (RANK_OFFSET + rank)
    for row in rows.values():
        scores[row.chunk_id] *= KIND_PRIOR.get(row.kind, 1.0) * row.quality**0.5
        if row.symbol and row.symbol.lower() == sought.text.strip().strip("_`()").lower():
            scores[row.chunk_id] *= EXACT_SYMBOL
    return Ranking(len(rows), _saturated(rows.values(), scores, most))


def _matching(
    connection: sqlite3.Connection, phrases: Iterable[str], filters: Filters
) -> list[_Row]:
    match = " OR ".join(f'"{phrase}"' for phrase in dict.fromkeys(phrases))
    if not match or not filters.sources:
        return []
    marks = ",".join("?" * len(filters.sources))
    conditions = [f"chunk.source in ({marks})"]
    values: list[object] = [match, *filters.sources]
    if filters.kind:
        conditions.append("chunk.kind = ?")
        values.append(filters.kind)
    if filters.arch:
        conditions.append("(chunk.arch = '' or instr(chunk.arch, ?))")
        values.append(f" {filters.arch} ")
    if filters.dtype:
        conditions.append("instr(chunk.dtype, ?)")
        values.append(f" {filters.dtype} ")
    weights = ", ".join(str(weight) for weight in FIELD_WEIGHTS)
    rows = connection.execute(
        "select chunk.id, chunk.path, chunk.kind, chunk.quality, chunk.symbol from fts"
        " join chunk on chunk.id = fts.rowid"
        f" where fts match ? and {' and '.join(conditions)}"
        f" order by bm25(fts, {weights}), chunk.id limit {DEPTH}",
        values,
    )
    return [_Row(*row) for row in rows]


def _saturated(rows: Iterable[_Row], scores: dict[int, float], most: int) -> list[Ranked]:
    """Pick greedily: the n-th further chunk of a file counts score * FILE_SATURATION^n."""
    left = {row.chunk_id: row for row in rows}
    picked: list[Ranked] = []
    seen: dict[str, int] = {}

    def worth(row: _Row) -> float:
        return scores[row.chunk_id] * FILE_SATURATION ** seen.get(row.path, 0)

    while left and len(picked) < most:
        best = max(left.values(), key=lambda row: (worth(row), -row.chunk_id))
        picked.append(Ranked(best.chunk_id, round(worth(best), 5)))
        seen[best.path] = seen.get(best.path, 0) + 1
        del left[best.chunk_id]
    return picked
