"""Which known state a program is in, by a fixed score; where none is near, a new state is named.

The score is a sum of three agreements: of the bottleneck, of the suspects, which count less the
further behind they stand, and of the traits. The same signature and states give the same match.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kopt.kernels.profile_result import BottleneckName
from kopt.search.knowledge.records import ProfileSignature, State

UNKNOWN_STATE = "unknown"
"""The seed state of programs of which nothing but a time is known."""
MIN_CONFIDENCE = 0.6
"""A lower score is no match. Source: the released matcher of KernelBlaster, arXiv 2602.14293."""
TIE = 0.02
"""Scores this near to the best one do not decide."""
SHOWN_SUSPECTS = 3
"""Suspects that are compared; later ones say too little to tell states apart."""

_BOTTLENECK, _SUSPECTS, _TRAITS = 0.45, 0.4, 0.15
"""Weight of each agreement. Suspects and traits together stay below `MIN_CONFIDENCE`: no program
is in a state of an unrelated bottleneck."""
_RELATED_FACTOR = 0.5
"""Agreement of a related bottleneck: a program is often on the border between both."""
_RELATED: tuple[frozenset[BottleneckName | str], ...] = (
    frozenset({"latency_bound", "occupancy_limited"}),
    frozenset({"memory_bound", "l2_bound"}),
    frozenset({"l2_bound", "l1_bound"}),
)
_NAMED_WORDS = 3
"""Words of the signature in the name of a new state, beside its bottleneck."""


@dataclass(frozen=True)
class Match:
    """The state of a program."""

    state: State
    """Known, or new and not yet in the base."""
    confidence: float
    """Score of the known state, 0 to 1; of a new state that of the nearest known one."""
    rivals: tuple[State, ...] = ()
    """Known states as near, the nearest first; the rule decides where no model does."""
    is_new: bool = False


def match_state(signature: ProfileSignature, states: Mapping[str, State]) -> Match:
    """Return the known state nearest to `signature`, or a new one where none is near.

    A new state inherits from the nearest known one of its bottleneck, if there is any. Equal
    scores go to documented states before discovered ones, then to the better suspects.
    """
    scores = {state.id: likeness(signature, state) for state in states.values()}
    suspects = {state.id: _suspects(signature, state) for state in states.values()}
    ranked = sorted(
        states.values(),
        key=lambda one: (-scores[one.id], one.is_discovered, -suspects[one.id], one.id),
    )
    if not ranked or scores[ranked[0].id] < MIN_CONFIDENCE:
        confidence = scores[ranked[0].id] if ranked else 0.0
        return Match(_new_state(signature, ranked), confidence, is_new=True)
    best, *others = ranked
    confidence = scores[best.id]
    rivals = (one for one in others if scores[one.id] >= max(confidence - TIE, MIN_CONFIDENCE))
    return Match(best, confidence, tuple(rivals))


def likeness(signature: ProfileSignature, state: State) -> float:
    """Return how near `state` is to `signature`, 0 to 1."""
    traits = _agreement_of_sets(signature.traits, state.traits)
    bottleneck = _bottleneck(signature.bottleneck, state.bottleneck)
    return _BOTTLENECK * bottleneck + _SUSPECTS * _suspects(signature, state) + _TRAITS * traits


def _suspects(signature: ProfileSignature, state: State) -> float:
    return _agreement(signature.suspects[:SHOWN_SUSPECTS], state.suspects)


def _bottleneck(one: str, other: str) -> float:
    if one == other:
        return 1.0
    return _RELATED_FACTOR if any({one, other} <= group for group in _RELATED) else 0.0


def _agreement(found: Sequence[str], expected: Sequence[str]) -> float:
    """Return the harmonic mean of how much of either list is in the other, 0 to 1.

    Of what was found the first counts twice the second and four times the third.
    """
    if not found and not expected:
        return 1.0
    weights = {name: 0.5**place for place, name in enumerate(found)}
    explained = sum(weights.get(name, 0.0) for name in expected)
    if not explained:
        return 0.0
    recall = explained / sum(weights.values())
    precision = sum(name in weights for name in expected) / len(expected)
    return 2 * recall * precision / (recall + precision)


def _agreement_of_sets(found: Collection[str], expected: Collection[str]) -> float:
    """Return which part of the expected traits was found: further ones contradict no state."""
    if not expected:
        return 0.0 if found else 1.0
    return sum(name in found for name in expected) / len(expected)


def _new_state(signature: ProfileSignature, ranked: Sequence[State]) -> State:
    suspects = signature.suspects[:SHOWN_SUSPECTS]
    words = (*suspects, *signature.traits)[:_NAMED_WORDS]
    same = (one for one in ranked if _bottleneck(signature.bottleneck, one.bottleneck))
    nearest = next(same, None)
    seen = ", ".join(words).replace("_", " ") or "nothing noticed"
    bottleneck = signature.bottleneck.replace("_", " ")
    return State(
        id="_".join(("discovered", signature.bottleneck, *words))[:64],
        bottleneck=signature.bottleneck,
        suspects=suspects,
        traits=signature.traits,
        description=f"A program found to be {bottleneck}, with {seen}.",
        source="found by rule in a profile",
        inherits=None if nearest is None else nearest.id,
        is_discovered=True,
    )
