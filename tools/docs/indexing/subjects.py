"""What chunks are about, for the list by subject: the postings of their tags.

A question about 128-bit loads and a kernel that spells them `float4` share no word and one tag. The
tags of a question are found as those of code are (`chunking/tags.yaml`), and by how people ask for
them (`ranking/asks.yaml`).
"""

from collections.abc import Iterator

from kopt.tools.docs.chunking.tags import facts_of
from kopt.tools.docs.ranking.asked_tags import asked_tags
from kopt.tools.docs.ranking.weights import WEIGHTS
from kopt.tools.docs.records import Chunk

from .postings import packed_postings, postings


class Subjects:
    """The tags of the chunks of one index, collected while it is written."""

    def __init__(self) -> None:
        self._shares: dict[str, list[tuple[int, float]]] = {}

    def add(self, chunk_id: int, chunk: Chunk) -> None:
        """Take the tags of a chunk; ids ascend. What its name says comes first and counts most."""
        prior = WEIGHTS.kind_prior.get(chunk.kind, 1.0)
        for place, tag in enumerate(dict.fromkeys(chunk.tags)):
            share = prior / (1 + WEIGHTS.tag_decay * place)
            self._shares.setdefault(tag, []).append((chunk_id, share))

    def rows(self) -> Iterator[tuple[str, bytes, bytes]]:
        """Yield tags with their postings, packed."""
        for tag, shares in self._shares.items():
            yield (tag, *packed_postings(postings(shares)))


def subjects_of(query: str) -> tuple[str, ...]:
    """Return the tags of a question."""
    return tuple(dict.fromkeys((*facts_of(query, "").tags, *asked_tags(query))))
