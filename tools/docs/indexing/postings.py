"""Posting lists: which chunks have a phrase, and how much it says about each of them, by BM25F.

A chunk's score is a sum over phrases: how rare one is, times its share in the chunk, which is
worked out when the index is written. Why the fields and the kind count as they do:
docs/retrieval.md.

Source: Robertson, Zaragoza, Taylor, "Simple BM25 extension to multiple weighted fields", CIKM 2004.
"""

import math
import zlib
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from kopt.tools.docs.weights import WEIGHTS

LARGEST_SHARE = WEIGHTS.term_saturation + 1
LEAST_IDF = 1e-6
"""Weight of a phrase that most documents have, as in the bm25 of SQLite: next to nothing."""
SHARE_STEP = LARGEST_SHARE / 255
"""A share in one byte is off by half of this at most: far less than one more occurrence."""
COMPRESSED_FROM = 64
"""Chunks in a list; shorter lists would not get smaller."""
_ENTRY_BYTES = 5
_USUAL_TERMS = (WEIGHTS.symbol_terms, None, WEIGHTS.comment_terms, None, WEIGHTS.code_terms, None)
"""Usual lengths of the fields of `entries.FIELDS`; None where the length does not count."""
Scored = list[tuple[int, float]]
"""Chunk ids with their scores, best first."""


class Postings(NamedTuple):
    """The chunks that have one phrase."""

    ids: "array[int]"
    """Chunk ids, ascending, 32 bits each."""
    levels: bytes
    """The phrase's share in each chunk, in steps of SHARE_STEP."""

    def packed(self) -> bytes:
        """Return the list as bytes, the longer ones compressed."""
        plain = self.ids.tobytes() + self.levels
        return plain if len(self.ids) < COMPRESSED_FROM else zlib.compress(plain)


NO_POSTINGS = Postings(array("i"), b"")


def unpacked_postings(count: int, packed: bytes) -> Postings:
    """Return a list of `count` chunks that was packed.

    Raises:
        ValueError: The bytes are no such list.
    """
    try:
        plain = packed if count < COMPRESSED_FROM else zlib.decompress(packed)
    except zlib.error as error:
        raise ValueError(f"postings of the index are damaged: {error}") from error
    if len(plain) != count * _ENTRY_BYTES:
        raise ValueError(f"postings of the index are damaged: {len(plain)} bytes for {count}")
    ids_end = len(plain) - count
    return Postings(array("i", plain[:ids_end]), plain[ids_end:])


class PostingLists:
    """The posting lists of one index, collected while it is written."""

    def __init__(self) -> None:
        self._lists: dict[str, tuple[array[int], bytearray]] = {}

    def add(self, chunk_id: int, shares: Iterable[tuple[str, float]]) -> None:
        """Add a chunk, by the phrases that it has with their shares; ids ascend."""
        for phrase, share in shares:
            ids, levels = self._lists.setdefault(phrase, (array("i"), bytearray()))
            ids.append(chunk_id)
            levels.append(min(255, max(1, round(share / SHARE_STEP))))

    def rows(self) -> Iterator[tuple[str, int, bytes]]:
        """Yield phrases in their order, each with the length of its list and the list, packed."""
        for phrase, (ids, levels) in sorted(self._lists.items()):
            yield phrase, len(ids), Postings(ids, bytes(levels)).packed()


class PhraseFinder:
    """Finds phrases of several terms where these follow each other."""

    def __init__(self, phrases: Iterable[str]) -> None:
        """Look for `phrases`, whose terms are separated by blanks."""
        self._by_first: dict[str, list[list[str]]] = {}
        for phrase in phrases:
            terms = phrase.split()
            self._by_first.setdefault(terms[0], []).append(terms)

    def in_terms(self, terms: Sequence[str]) -> set[str]:
        """Return the phrases that consecutive `terms` make up."""
        return {
            " ".join(phrase)
            for at, term in enumerate(terms)
            for phrase in self._by_first.get(term, ())
            if terms[at : at + len(phrase)] == phrase
        }


def term_shares(
    kind: str, fields: Sequence[str], finder: PhraseFinder
) -> Iterator[tuple[str, float]]:
    """Yield the terms and phrases of a chunk with their shares, 0 to LARGEST_SHARE.

    `fields` has the terms of each of `entries.FIELDS`, separated by blanks.
    """
    frequencies: dict[str, float] = {}
    for text, weight, usual in zip(fields, WEIGHTS.fields, _USUAL_TERMS, strict=True):
        terms = text.split()
        gain = weight / _norm(len(terms), usual)
        for term, count in Counter(terms).items():
            frequencies[term] = frequencies.get(term, 0.0) + gain * count
        for phrase in finder.in_terms(terms):
            frequencies[phrase] = frequencies.get(phrase, 0.0) + gain
    prior = WEIGHTS.kind_prior.get(kind, 1.0)
    for phrase, frequency in frequencies.items():
        yield phrase, prior * frequency * LARGEST_SHARE / (frequency + WEIGHTS.term_saturation)


def tag_shares(kind: str, tags: Iterable[str]) -> Iterator[tuple[str, float]]:
    """Yield the tags of a chunk with their shares: what its name says comes first, counts most."""
    prior = WEIGHTS.kind_prior.get(kind, 1.0)
    for place, tag in enumerate(dict.fromkeys(tags)):
        yield tag, prior / (1 + WEIGHTS.tag_decay * place)


def idf(chunks: int, having: int) -> float:
    """Return the weight of a phrase that `having` of `chunks` have."""
    return max(math.log((chunks - having + 0.5) / (having + 0.5)), LEAST_IDF)


def best_scored(
    weighted: Sequence[tuple[float, Postings]], allowed: "array[int] | None", most: int
) -> Scored:
    """Return the `most` best sums of weight times share; equal ones in the order of their ids.

    `allowed` has the ids that may be answers, ascending; None allows all.
    """
    import numpy as np

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


def _norm(length: int, usual: float | None) -> float:
    if usual is None:
        return 1.0
    return 1 - WEIGHTS.length_share + WEIGHTS.length_share * length / usual
