"""What the knowledge base suggests for the leader of a run, with what each expectation rests on.

Reads only: no model is asked and nothing is kept, so that it costs a step nothing but the draw.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import exp

from kopt.kernels.profile_result import ProfileResult
from kopt.search.advice.suggestions import MemorySuggestion
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.policy.selector import Drawn, draw, listed_of
from kopt.search.knowledge.states.matching import UNKNOWN_STATE, match_state
from kopt.search.knowledge.states.signature import extract_signature
from kopt.search.records.members import Member
from kopt.search.rounds.advice import allowed_techniques, used_techniques
from kopt.search.rounds.run_context import RunContext
from kopt.search.store.taught import THIS_RUN

MOST_REMEMBERED = 2
MOST_EVIDENCE = 3


@dataclass(frozen=True)
class _Placed:
    """The leader and its state."""

    member: Member
    state: str
    confidence: float


def suggest_from_memory(
    context: RunContext, profile: ProfileResult | None
) -> tuple[MemorySuggestion, ...]:
    """Return what memory suggests for the leader; () without memory, a leader or its state."""
    state = context.state()
    if not context.memory.is_on or not state.beam:
        return ()
    base = context.memory.base()
    placed = _placed(context, base, context.members()[state.beam[0]], profile)
    if placed is None or placed.state == UNKNOWN_STATE:
        return ()
    used = used_techniques(placed.member, context)
    situation = context.memory.situation(placed.member, placed.state, used)
    # Techniques without any evidence are not suggested to a caller.
    known = listed_of(base, situation, allowed_techniques(context, base))
    name = f"{state.settings.seed}/r{state.round}/step"
    drawn = draw(base, situation, known, MOST_REMEMBERED, name)
    return tuple(_remembered(one, placed, base, state.id) for one in drawn)


def _placed(
    context: RunContext, base: KnowledgeBase, member: Member, profile: ProfileResult | None
) -> _Placed | None:
    known = context.memory.programs().get(member.seq)
    if known is not None:
        return _Placed(member, known.state.id, known.confidence)
    if profile is None:
        return None
    match = match_state(extract_signature(profile), base.states)
    # A state that is new to the base is known by the one that it inherits from.
    state = match.state.inherits if match.is_new else match.state.id
    return None if state is None else _Placed(member, state, match.confidence)


def _remembered(drawn: Drawn, placed: _Placed, base: KnowledgeBase, run: str) -> MemorySuggestion:
    technique, found = drawn.technique, drawn.prediction
    return MemorySuggestion(
        technique=technique.id,
        family=technique.family,
        description=technique.description,
        candidate=placed.member.seq,
        state=placed.state,
        confidence=placed.confidence,
        speed=exp(found.gain),
        interval=(exp(found.interval[0]), exp(found.interval[1])),
        works=found.works,
        tries=found.tries,
        rests_on=found.sources,
        evidence=tuple(_evidence(technique.id, placed.state, base, run))[:MOST_EVIDENCE],
        is_exploration=drawn.is_exploration,
    )


def _evidence(technique: str, state: str, base: KnowledgeBase, run: str) -> Iterator[str]:
    """Yield the last samples of a technique, of the state itself first, the latest first."""
    for one in base.ancestry(state):
        entry = base.entries.get((one.id, (technique,)))
        for origins in () if entry is None else entry.evidence.values():
            for evidence in origins.values():
                for sample in reversed(evidence.seen):
                    own = sample.removeprefix(f"{THIS_RUN}/")
                    yield sample if own == sample else f"{run}/{own}"
