"""Which techniques to try next: a weighted random draw by gain, confidence and novelty.

Thompson sampling: every technique gets the value that it has in a world drawn from what is
believed of it, and the most valuable are taken. A technique that is well known to gain is drawn
nearly always, one that is little known sometimes, one that is known not to gain hardly ever.
Nothing else is random: the same base, situation, techniques and seed give the same draws
everywhere, and a technique's own number does not depend on which others are allowed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import expm1
from random import Random

from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.records import Technique

from .posterior import Expectation, Prediction, Predictor, Situation

EXPLORED_SHARE = 0.1
"""Share of draws that go to a technique with fewer than NOVEL_TRIES tries here, if there is one.

Without it a base would go on with what it happened to find first."""
NOVEL_TRIES = 3
"""Tries below which a technique is little known here."""
USED_FACTOR = 0.3
"""Value left for each time that a technique was applied before or tried on the same program: of
repetitions 50 to 80 % gain nothing, as the KernelBlaster paper reports."""
PREPARING_SHARE = 0.5
"""How much of what a technique would add to a later one counts as its own value: the later step
may never come."""


@dataclass(frozen=True)
class Drawn:
    """A technique to try next."""

    technique: Technique
    prediction: Prediction
    value: float
    """The drawn value that put it before others, ln; no expectation."""
    is_exploration: bool
    """Drawn because little is known of it."""
    why: str
    """One line for people and models."""


def draw(
    base: KnowledgeBase,
    situation: Situation,
    allowed: Sequence[Technique],
    k: int,
    seed: str,
) -> tuple[Drawn, ...]:
    """Return `k` techniques to try next, the first drawn first, or all if there are less.

    They are of those that are `allowed` and not deprecated; where `base` has no entries and pairs
    all are equally likely. `seed` names the draw, e.g. `0/r3/t2`.
    """
    options = _options(base, situation, allowed, seed)
    rng = Random(f"{seed}/slots")
    drawn: list[Drawn] = []
    while options and len(drawn) < k:
        novel = [one for one in options if one.known.tries < NOVEL_TRIES]
        is_exploration = rng.random() < EXPLORED_SHARE and bool(novel)
        taken = max(novel if is_exploration else options, key=lambda one: one.value)
        options.remove(taken)
        why = _why(taken, is_exploration)
        prediction = taken.known.prediction
        drawn.append(Drawn(taken.technique, prediction, taken.value, is_exploration, why))
    return tuple(drawn)


@dataclass(frozen=True)
class _Option:
    technique: Technique
    known: Expectation
    value: float
    prepares: str | None


def _options(
    base: KnowledgeBase, situation: Situation, allowed: Sequence[Technique], seed: str
) -> list[_Option]:
    """Return what can be drawn, each with its value in a world drawn from what is believed."""
    reader = Predictor(base, situation)
    entries = base.entries_of(situation.state)
    deprecated = {entry.techniques for entry in entries if entry.is_deprecated}
    able = {one.id: one for one in allowed if (one.id,) not in deprecated}
    known = {name: reader.known((name,)) for name in sorted(able)}
    prepared = _prepared(base, reader, known, situation.used)
    found: list[_Option] = []
    for name, held in known.items():
        value = held.belief.drawn_value(Random(f"{seed}/{name}"))
        target, more = prepared.get(name, (None, 0.0))
        value += PREPARING_SHARE * held.belief.works * more
        uses = max(situation.used.count(name), int(name == situation.previous))
        value *= USED_FACTOR**uses
        found.append(_Option(able[name], held, value, target))
    return found


def _prepared(
    base: KnowledgeBase, reader: Predictor, known: Mapping[str, Expectation], used: Sequence[str]
) -> dict[str, tuple[str, float]]:
    """Return what techniques prepare: the one that gains most by it, and what it gains, ln."""
    found: dict[str, tuple[str, float]] = {}
    for before, after in base.pairs:
        if before not in known or after not in known or after in used:
            continue
        more = known[after].belief.works * reader.extra(before, after)
        if more > found.get(before, ("", 0.0))[1]:
            found[before] = (after, more)
    return found


def _why(option: _Option, is_exploration: bool) -> str:
    """Return one line on what is expected, what it rests on and what else spoke for it."""
    belief, sources = option.known.belief, option.known.sources
    low, high = (100 * expm1(bound) for bound in belief.interval)
    words = [
        f"{100 * expm1(belief.mean):+.0f} % expected ({low:+.0f} to {high:+.0f} %)"
        f" where it has an effect, {100 * belief.works:.0f} % of tries",
        "; ".join(sources) or "nothing is known of it here",
    ]
    if option.prepares:
        words.append(f"prepares {option.prepares}")
    if is_exploration:
        words.append(f"explored: fewer than {NOVEL_TRIES} tries here")
    return "; ".join(words)


def listed_of(
    base: KnowledgeBase, situation: Situation, allowed: Sequence[Technique]
) -> list[Technique]:
    """Return the techniques that are expected to gain here and were not used yet."""
    reader = Predictor(base, situation)
    used = {*situation.used, situation.previous}
    known = ((one, reader.known((one.id,))) for one in allowed if one.id not in used)
    return [one for one, held in known if held.sources and held.belief.mean > 0]
