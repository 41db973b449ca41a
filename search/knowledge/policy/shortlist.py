"""Which techniques something speaks for in a situation: what is worth suggesting to somebody else.

A run draws among all that can apply (`selector.py`), so that it finds out about others, too.
"""

from collections.abc import Sequence

from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.records import Technique

from .posterior import Reader, Situation


def listed_of(
    base: KnowledgeBase, situation: Situation, allowed: Sequence[Technique]
) -> list[Technique]:
    """Return the techniques that are expected to gain here and were not used yet."""
    reader = Reader(base, situation)
    used = {*situation.used, situation.previous}
    known = ((one, reader.known((one.id,))) for one in allowed if one.id not in used)
    return [one for one, held in known if held.sources and held.belief.mean > 0]
