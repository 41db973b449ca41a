"""Lists of places fused by reciprocal rank.

Source: Cormack, Clarke, Buettcher, "Reciprocal rank fusion outperforms Condorcet and individual
rank learning methods", SIGIR 2009.
"""

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from .weights import WEIGHTS

Place = tuple[int, int]
"""Number of the collection, id of the chunk in it."""


class RankedList(NamedTuple):
    """One opinion about what is best."""

    weight: float
    places: Sequence[Place]
    """Best first."""
    ranks: Sequence[float]
    """Of each place, from 1."""


def in_order(weight: float, places: Sequence[Place]) -> RankedList:
    """Return a list whose places have the ranks 1, 2, 3 and so on."""
    return RankedList(weight, places, range(1, len(places) + 1))


def with_ties(weight: float, scored: Sequence[tuple[Place, float]]) -> RankedList:
    """Return a list in which equal scores share the mean of their ranks.

    Hundreds of chunks may have the tags of a question alike; their order says nothing.
    """
    ranks: list[float] = []
    for _score, group in groupby(scored, key=lambda one: one[1]):
        size = len(list(group))
        ranks += [len(ranks) + (size + 1) / 2] * size
    return RankedList(weight, [place for place, _score in scored], ranks)


def fused(lists: Iterable[RankedList]) -> dict[Place, float]:
    """Return the best places with the sums of their reciprocal ranks."""
    scores: dict[Place, float] = {}
    for weight, places, ranks in lists:
        for place, rank in zip(places, ranks, strict=True):
            scores[place] = scores.get(place, 0.0) + weight / (WEIGHTS.rank_offset + rank)
    best = sorted(scores.items(), key=lambda one: (-one[1], one[0]))
    return dict(best[: WEIGHTS.kept])
