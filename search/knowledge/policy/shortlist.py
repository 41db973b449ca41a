"""Whom a draw is held among: first the techniques that the base lists for a state, then all others.

A state has a handful of techniques that documents or results speak for, and dozens that nobody has
tried there. In one draw among all of them the luckiest of the dozens nearly always wins; so those
get a share of the draws of their own, and all that is left when the listed ones have been used.
"""

from collections.abc import Sequence
from random import Random

from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.records import Technique

from .posterior import Reader, Situation
from .selector import Drawn, draw

UNLISTED_SHARE = 0.15
"""Share of draws that are held among all techniques: what is not listed may be good, too."""


def draw_listed(
    base: KnowledgeBase,
    situation: Situation,
    allowed: Sequence[Technique],
    k: int,
    seed: str,
) -> tuple[Drawn, ...]:
    """Return `k` different techniques to try next, as `selector.draw` does, of a shortlist first.

    Without any that is listed, as without memory, it is `selector.draw`.
    """
    listed = listed_of(base, situation, allowed)
    is_open = Random(f"{seed}/shortlist").random() < UNLISTED_SHARE
    if is_open or not listed:
        return draw(base, situation, allowed, k, seed)
    first = draw(base, situation, listed, k, seed)
    taken = {one.technique.id for one in first}
    others = [one for one in allowed if one.id not in taken]
    missing = k - len(first)
    return (*first, *draw(base, situation, others, missing, f"{seed}/others"))


def listed_of(
    base: KnowledgeBase, situation: Situation, allowed: Sequence[Technique]
) -> list[Technique]:
    """Return the techniques that something speaks for here, and that were not used yet."""
    reader = Reader(base, situation)
    used = {*situation.used, situation.previous}
    known = ((one, reader.known((one.id,))) for one in allowed if one.id not in used)
    return [one for one, held in known if held.sources and held.belief.mean > 0]
