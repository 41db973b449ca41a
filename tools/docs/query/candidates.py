"""A function or document that may be an answer."""

from dataclasses import dataclass

from kopt.tools.docs.indexing.collection import ChunkFacts, Collection

Place = tuple[int, int]
"""Number of the collection, id of the chunk in it."""


@dataclass(frozen=True)
class PageCandidate:
    """A function or document that matches, by its best piece."""

    place: Place
    """With the id of its first piece."""
    collection: Collection
    facts: ChunkFacts
    score: float
