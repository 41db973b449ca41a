"""Which chunks have a phrase and how much it says about them: kept in bytes, summed to scores.

BM25 of a chunk is a sum over phrases: how rare the phrase is, times the phrase's share in the
chunk, which never changes. So shares are worked out once, when the index is written.
"""

import math
import sqlite3
import zlib
from array import array
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kopt.tools.docs.weights import WEIGHTS

from .entries import FIELDS

LARGEST_SHARE = WEIGHTS.term_saturation + 1
LEAST_IDF = 1e-6
"""Of FTS5's bm25: a phrase that most documents have counts next to nothing, and never less."""
SHARE_STEP = LARGEST_SHARE / 255
"""A share in one byte is off by half of this at most: far less than one more occurrence."""
Scored = list[tuple[int, float]]
"""Chunk ids with their scores, best first."""


class Postings(NamedTuple):
    """The chunks that have one phrase."""

    ids: "array[int]"
    """Ascending, 32 bits each."""
    levels: bytes
    """The phrase's share in each chunk, in steps of SHARE_STEP."""


def idf(chunks: int, having: int) -> float:
    """Return the weight of a phrase that `having` of `chunks` have, as FTS5's bm25 has it."""
    return max(math.log((chunks - having + 0.5) / (having + 0.5)), LEAST_IDF)


def postings(shares: Sequence[tuple[int, float]]) -> Postings:
    """Return the postings of one phrase out of ids, ascending, with its shares in them."""
    ids = array("i", [chunk_id for chunk_id, _share in shares])
    return Postings(ids, bytes(min(255, max(1, round(one / SHARE_STEP))) for _id, one in shares))


def packed_postings(one: Postings) -> tuple[bytes, bytes]:
    """Return ids and levels, compressed."""
    return zlib.compress(one.ids.tobytes()), zlib.compress(one.levels)


def unpacked_postings(ids: bytes, levels: bytes) -> Postings:
    """Return the postings that were packed.

    Raises:
        ValueError: The bytes are no such thing.
    """
    try:
        return Postings(array("i", zlib.decompress(ids)), zlib.decompress(levels))
    except zlib.error as error:
        raise ValueError(f"postings of the index are damaged: {error}") from error


def best_scored(
    weighted: Sequence[tuple[float, Postings]], allowed: "array[int] | None", most: int
) -> Scored:
    """Return the `most` best sums of weight times share; equal ones in the order of their ids.

    Args:
        weighted: Phrases with their weights.
        allowed: Ids that may be answers, ascending; None for all.
        most: Answers at most.
    """
    try:
        import numpy as np
    except ImportError:
        return _best_without_numpy(weighted, allowed, most)
    ends = [one.ids[-1] for _weight, one in weighted if one.ids]
    scores = np.zeros(max(ends, default=0) + 1, np.float32)
    for weight, one in weighted:
        ids = np.frombuffer(one.ids, np.int32)
        scores[ids] += np.float32(weight * SHARE_STEP) * np.frombuffer(one.levels, np.uint8)
    if allowed is not None:
        may = np.frombuffer(allowed, np.int32)
        kept = np.zeros_like(scores)
        may = may[may < len(scores)]
        kept[may] = scores[may]
        scores = kept
    found = np.flatnonzero(scores)
    if len(found) > most:
        least = np.partition(scores[found], len(found) - most)[len(found) - most]
        found = found[scores[found] >= least]
    order = np.lexsort((found, -scores[found]))[:most]
    return [(int(at), float(scores[at])) for at in found[order]]


def _best_without_numpy(
    weighted: Sequence[tuple[float, Postings]], allowed: "array[int] | None", most: int
) -> Scored:
    scores: dict[int, float] = {}
    for weight, one in weighted:
        for chunk_id, level in zip(one.ids, one.levels, strict=True):
            scores[chunk_id] = scores.get(chunk_id, 0.0) + weight * SHARE_STEP * level
    may = None if allowed is None else set(allowed)
    left = [one for one in scores.items() if may is None or one[0] in may]
    return sorted(left, key=lambda one: (-one[1], one[0]))[:most]


_SUMS = ", ".join(f"sum(col = '{field}') as {field}" for field in FIELDS)
_COUNTS = ", ".join(f"found.{field}" for field in FIELDS)
_KNOWN = (
    f"select doc, kind, chunk.symbol_terms, comment_terms, code_terms, {_COUNTS} from ({{found}})"
    " as found join chunk on chunk.id = doc order by doc"
)
_OF_TERM = f"select doc, {_SUMS} from temp.instance where term = :sought group by doc"
_OF_PHRASE = f"select doc, {_SUMS} from ({{matches}}) group by doc"
_MATCH = "select rowid as doc, '{field}' as col from fts where fts match '{field} : ' || :sought"


class Lengths(NamedTuple):
    """How many terms a chunk has in the fields whose length counts."""

    symbol: int
    comment: int
    code: int


def phrase_shares(connection: sqlite3.Connection, phrase: str) -> list[tuple[int, float]]:
    """Return (chunk id, share) of every chunk with `phrase`, ids ascending.

    A share is from 0 to `WEIGHTS.term_saturation` + 1. Of a phrase of several terms a field has
    one or none.
    """
    if " " in phrase:
        matches = " union all ".join(_MATCH.format(field=field) for field in FIELDS)
        found, sought = _OF_PHRASE.format(matches=matches), f'"{phrase}"'
    else:
        connection.execute(
            "create virtual table if not exists temp.instance"
            " using fts5vocab('main', 'fts', 'instance')"
        )
        found, sought = _OF_TERM, phrase
    rows = connection.execute(_KNOWN.format(found=found), {"sought": sought})
    return [
        (chunk_id, _share(kind, Lengths(*lengths), counts))
        for chunk_id, kind, lengths, counts in _split(rows)
    ]


def _split(
    rows: sqlite3.Cursor,
) -> Iterator[tuple[int, str, tuple[int, int, int], tuple[int, ...]]]:
    for chunk_id, kind, *numbers in rows:
        symbol, comment, code, *counts = numbers
        yield chunk_id, kind, (symbol, comment, code), tuple(counts)


def _share(kind: str, lengths: Lengths, counts: tuple[int, ...]) -> float:
    norms = (
        _norm(lengths.symbol, WEIGHTS.symbol_terms),
        1.0,
        _norm(lengths.comment, WEIGHTS.comment_terms),
        1.0,
        _norm(lengths.code, WEIGHTS.code_terms),
        1.0,
    )
    frequency = sum(
        weight * count / norm
        for weight, count, norm in zip(WEIGHTS.fields, counts, norms, strict=True)
    )
    saturation = WEIGHTS.term_saturation
    prior = WEIGHTS.kind_prior.get(kind, 1.0)
    return prior * frequency * (saturation + 1) / (frequency + saturation)


def _norm(length: int, usual: float) -> float:
    return 1 - WEIGHTS.length_share + WEIGHTS.length_share * length / usual
