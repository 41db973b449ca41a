"""Which chunks have a phrase and how much it says about them: kept in bytes, summed to scores.

BM25 of a chunk is a sum over phrases: how rare the phrase is, times the phrase's share in the
chunk, which never changes. So shares are worked out once, when the index is written.
"""

import math
import zlib
from array import array
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple

LARGEST_SHARE = 2.2
"""k1 + 1 of FTS5's bm25."""
LEAST_IDF = 1e-6
"""Of FTS5's bm25: a phrase that most documents have counts next to nothing, and never less."""
_STEP = LARGEST_SHARE / 255
Scored = list[tuple[int, float]]
"""Chunk ids with their scores, best first."""


class Postings(NamedTuple):
    """The chunks that have one phrase."""

    ids: "array[int]"
    """Ascending, 32 bits each."""
    shares: "array[float]"
    """Of the phrase in each chunk, 0 to LARGEST_SHARE, 32 bits each."""


def idf(chunks: int, having: int) -> float:
    """Return the weight of a phrase that `having` of `chunks` have, as FTS5's bm25 has it."""
    return max(math.log((chunks - having + 0.5) / (having + 0.5)), LEAST_IDF)


def postings(rows: Iterable[tuple[int, float]], chunks: int) -> Postings:
    """Return the postings of one phrase.

    Args:
        rows: Ids, ascending, with the bm25 of the phrase alone, as a positive number.
        chunks: How many there are in the index.
    """
    found = list(rows)
    weight = idf(chunks, len(found))
    ids = array("i", [chunk_id for chunk_id, _score in found])
    return Postings(ids, array("f", [score / weight for _chunk_id, score in found]))


def packed_postings(one: Postings) -> tuple[bytes, bytes]:
    """Return ids and shares as bytes; a share loses up to LARGEST_SHARE / 510."""
    steps = array("i", [at - before for before, at in zip((0, *one.ids), one.ids, strict=False)])
    shares = bytes(min(255, max(1, round(share / _STEP))) for share in one.shares)
    return zlib.compress(steps.tobytes()), zlib.compress(shares)


def unpacked_postings(ids: bytes, shares: bytes) -> Postings:
    """Return the postings that were packed.

    Raises:
        ValueError: The bytes are no such thing.
    """
    try:
        steps = array("i", zlib.decompress(ids))
        levels = zlib.decompress(shares)
    except zlib.error as error:
        raise ValueError(f"postings of the index are damaged: {error}") from error
    return Postings(array("i", accumulate(steps)), array("f", [_SHARES[level] for level in levels]))


_SHARES = [level * _STEP for level in range(256)]


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
        scores[ids] += np.float32(weight) * np.frombuffer(one.shares, np.float32)
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
        for chunk_id, share in zip(one.ids, one.shares, strict=True):
            scores[chunk_id] = scores.get(chunk_id, 0.0) + weight * share
    may = None if allowed is None else set(allowed)
    left = [one for one in scores.items() if may is None or one[0] in may]
    return sorted(left, key=lambda one: (-one[1], one[0]))[:most]
