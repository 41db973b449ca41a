"""What the knowledge base advises on a program of the run: techniques, drawn with a seed."""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from kopt.search.agents.plans import Draw, Hypothesis
from kopt.search.agents.views import Advice
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.policy.posterior import Predictor, predict
from kopt.search.knowledge.policy.selector import draw
from kopt.search.knowledge.records import Technique
from kopt.search.knowledge.states.applicability import why_not
from kopt.search.knowledge.states.applications import TUNE_CONSTANTS
from kopt.search.records.members import Member
from kopt.search.records.run_state import BranchRow
from kopt.search.store.taught import StatedProgram

from .programs import state_of
from .run_context import RunContext

ADVISED = 6
"""Techniques that the planner of a beam is offered for the leader: more than it has places."""


@dataclass(frozen=True)
class Request:
    """How many techniques are wanted for a program, and how the draw is named."""

    count: int
    name: str
    """`r3/t2`: with the seed of the run it makes the draw, the same whenever it is made again."""
    also_used: tuple[str, ...] = ()
    """Techniques that were just drawn for the same program, beside those that the run knows of."""
    given_up: frozenset[str] = frozenset()
    """Families that get no further candidates."""


def advise(context: RunContext, member: Member, request: Request) -> Advice:
    """Return the state of `member` and techniques to try on it."""
    stated, base = state_of(context, member), context.memory.base()
    used = (*used_techniques(member, context), *request.also_used)
    drawn = draw(
        base,
        context.memory.situation(member, stated.state.id, used),
        allowed_techniques(context, base, request.given_up),
        request.count,
        f"{context.state().settings.seed}/{request.name}",
    )
    names = [(one.technique.id,) for one in drawn]
    notes = _notes_on(base, stated, names)
    return Advice(member.seq, stated.state, stated.confidence, drawn, notes)


def drawn_gains(context: RunContext, member: Member, techniques: Sequence[str]) -> dict[str, float]:
    """Return what each technique gains in a world drawn from what is believed of it, ln.

    What is not known to the base, and everything without memory, is left out.
    """
    if not context.memory.is_on:
        return {}
    stated, base = state_of(context, member), context.memory.base()
    reader = Predictor(base, context.memory.situation(member, stated.state.id))
    seed = f"{context.state().settings.seed}/r{context.state().round + 1}/g{member.label}"
    return {
        name: reader.known((name,)).belief.drawn_gain(Random(f"{seed}/{name}"))
        for name in techniques
        if name in base.techniques
    }


def advice_on(context: RunContext, member: Member, techniques: tuple[str, ...]) -> Advice:
    """Return the state of `member` and what is remarked on the `techniques` chosen for it."""
    stated, base = state_of(context, member), context.memory.base()
    notes = _notes_on(base, stated, [techniques])
    return Advice(member.seq, stated.state, stated.confidence, notes=notes)


def expected(context: RunContext, hypothesis: Hypothesis) -> Hypothesis:
    """Return a hypothesis with the state of its first parent and what is expected of it there.

    Techniques that the base does not have are left out.
    """
    base = context.memory.base()
    if not context.memory.is_on or not hypothesis.parents:
        return hypothesis
    member = context.members()[hypothesis.parents[0]]
    state = state_of(context, member).state.id
    techniques = tuple(one for one in hypothesis.techniques if one in base.techniques)
    changes: dict[str, object] = {"state": state, "techniques": techniques}
    if techniques:
        found = predict(base, context.memory.situation(member, state), techniques)
        changes |= {"predicted_gain": found.gain, "predicted_interval": found.interval}
    return hypothesis.model_copy(update=changes)


def allowed_techniques(
    context: RunContext, base: KnowledgeBase, given_up: frozenset[str] = frozenset()
) -> tuple[Technique, ...]:
    """Return the techniques that can apply to the run's kernel; sweeping is kopt's own."""
    parts = context.memory.parts
    kernel = None if parts is None else parts.traits(given_up)
    return tuple(
        technique
        for technique in base.techniques.values()
        if technique.id != TUNE_CONSTANTS and (kernel is None or not why_not(technique, kernel))
    )


def used_techniques(member: Member, context: RunContext) -> tuple[str, ...]:
    """Return what was applied on the way to `member` and tried on it, one entry for each use."""
    members = context.members()
    used: list[str] = []
    at: Member | None = member
    while at is not None:
        used += at.techniques if at.lineage != "fix" else ()
        at = members[at.parents[0]] if at.parents else None
    for branch in context.search.store.reader.branches():
        if branch.parents[:1] == (member.seq,):
            used += _claimed(branch)
    for one in members:
        if one.branch is None and one.parents[:1] == (member.seq,):
            used += one.techniques
    return tuple(used)


def draws_of(advice: Advice, slots: Sequence[str] = ()) -> tuple[Draw, ...]:
    """Return what was drawn, as it is kept with the plan; `slots`: what each fills."""
    return tuple(
        Draw(
            slot=slots[place] if place < len(slots) else "",
            candidate=advice.candidate,
            state=advice.state.id,
            technique=one.technique.id,
            prediction=one.prediction,
            is_exploration=one.is_exploration,
            why=one.why,
        )
        for place, one in enumerate(advice.drawn)
    )


def _notes_on(
    base: KnowledgeBase, stated: StatedProgram, chosen: Sequence[tuple[str, ...]]
) -> tuple[str, ...]:
    """Return the remarks of the base on techniques in a state."""
    entries = (base.entries.get((stated.state.id, techniques)) for techniques in chosen)
    return tuple(note.text for entry in entries if entry is not None for note in entry.notes)


def _claimed(branch: BranchRow) -> tuple[str, ...]:
    return Hypothesis.model_validate(branch.hypothesis).techniques
