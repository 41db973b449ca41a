"""The planner: one call fills the slots of a round with hypotheses.

A plan is always made. What a model leaves out or says in an unusable form is said to it once; what
is still missing then is filled by rule.
"""

import json
from dataclasses import dataclass
from typing import cast

from pydantic import Field, ValidationError

from kopt.kernels.candidate import MAX_HYPOTHESIS_CHARACTERS
from kopt.kernels.families import FAMILIES
from kopt.kernels.record import ToldRecord
from kopt.tools.facts.rendering import render
from kopt.tools.facts.wording import plain_beginning

from .agent_context import AgentContext, Briefing
from .conversation import Answer, ConversationStart, obtain_answer
from .knowledge_prompt import advice_words
from .plans import Hypothesis, Plan
from .prompt import fenced, render_prompt
from .round_prompt import (
    attempts_of,
    evidence_for,
    families_of,
    labels,
    lessons_of,
    parents_of_slots,
    suggestions_for,
)
from .rule_plans import fill_by_rule
from .slots import Slot
from .tool_definitions import MISTAKES_CHARACTERS, answer_schema, mistakes_of
from .views import RoundView

_MOST_GAIN = 10.0
_MOST_TECHNIQUES = 4  # of one candidate, as memory takes them
_NAME_CHARACTERS = 80
_WHY_CHARACTERS = 240


class _Idea(ToldRecord):
    slot: str
    """Id of the slot that it fills; empty for a hypothesis beyond the slots."""
    family: str = Field(json_schema_extra={"enum": list(FAMILIES)})
    name: str = Field(min_length=1)
    """A few words, unlike those of the others."""
    techniques: tuple[str, ...] = ()
    """Ids of the techniques that it applies, in their order: one, where it can be one; none where
    no id says what it does."""
    hypothesis: str = Field(min_length=1)
    """What to change, and why it should be faster. At most 2,000 characters, as all texts."""
    mechanism: str
    """What of the hardware makes it faster."""
    expected_gain: float = Field(allow_inf_nan=False)
    """Fraction of the parent's speed: 0.1 for 10 %."""
    risk: str
    """What could go wrong."""
    evidence: str
    """The numbers or documents that it stands on; what is guessed."""


class _PlannerAnswer(ToldRecord):
    hypotheses: tuple[_Idea, ...]


PLAN_SCHEMA = answer_schema(_PlannerAnswer)


@dataclass(frozen=True)
class _Ideas:
    """The usable hypotheses of an answer."""

    by_slot: dict[str, _Idea]
    surplus: tuple[_Idea, ...]


def plan(context: AgentContext, view: RoundView) -> Plan:
    """Return a hypothesis for each slot of `view`, and the surplus for the reserve.

    Raises:
        CallFailed, BudgetSpent, Stopped: As `ModelClient.ask`; other failures are in the result.
    """
    opening = _opening(context, view)
    answer = obtain_answer(context.client, opening, lambda text: _read(text, view.slots))
    ideas = answer.value or _Ideas({}, ())
    known = _known_techniques(context.briefing, view)
    planned = {
        slot.id: _hypothesis(ideas.by_slot[slot.id], slot, known)
        for slot in view.slots
        if slot.id in ideas.by_slot
    }
    empty = [slot for slot in view.slots if slot.id not in planned]
    suggestions = suggestions_for(view, context.briefing)
    for one in fill_by_rule(view, empty, suggestions, tuple(planned.values())):
        planned[one.slot] = one
    reserve = [_hypothesis(idea, None, known) for idea in ideas.surplus[: view.reserve_wanted]]
    return Plan(
        hypotheses=tuple(planned[slot.id] for slot in view.slots),
        reserve=tuple(reserve),
        origin="fallback" if empty else "model",
        why=answer.mistakes if empty else "",
    )


def _opening(context: AgentContext, view: RoundView) -> ConversationStart:
    wanted = view.reserve_wanted
    text = render_prompt(
        "plan_round",
        {
            "round": str(view.round),
            "slots": _slots(view),
            "reserve": f"{wanted} hypotheses with an empty slot, of families of their own as far as"
            " there are any, each from candidate 0."
            if wanted
            else "no further hypotheses.",
            "candidates": attempts_of(view),
            "families": families_of(view),
            "evidence": evidence_for(view, context.briefing),
            "memory": advice_words(view.advice, view.members),
            "lessons": lessons_of(view.reflections, view.members),
            "sources": parents_of_slots(view),
        },
    )
    return context.start("planner", f"r{view.round}/plan", text, PLAN_SCHEMA)


def _slots(view: RoundView) -> str:
    """Return what is to be filled, and why: the reasons may quote candidates."""
    facts = [
        {"id": slot.id, "kind": slot.kind, "parents": labels(slot.parents, view.members) or "0"}
        for slot in view.slots
    ]
    reasons = [f"{slot.id}: {plain_beginning(slot.why, _WHY_CHARACTERS)}" for slot in view.slots]
    why = fenced("why there are these slots", "\n".join(reasons))
    return f"{render({'slots': facts})}\n\n{why}"


def _read(text: str, slots: tuple[Slot, ...]) -> Answer[_Ideas]:
    """Return what of an answer can be used, and what is wrong with it."""
    try:
        ideas, mistakes = _ideas_in(text)
    except ValidationError as error:
        return Answer(None, mistakes_of(error))
    wanted = {slot.id: slot for slot in slots}
    by_slot: dict[str, _Idea] = {}
    surplus: list[_Idea] = []
    for idea in ideas:
        if idea.slot in wanted and idea.slot not in by_slot:
            by_slot[idea.slot] = idea
        else:
            surplus.append(idea)
    missing = [slot for slot in wanted if slot not in by_slot]
    if missing:
        mistakes.append(f"no hypothesis for {', '.join(missing)}")
    new = [by_slot[slot.id].family for slot in slots if slot.kind == "new" and slot.id in by_slot]
    if len(set(new)) < len(new):
        mistakes.append("`new` slots share a family")
    told = plain_beginning("; ".join(mistakes), MISTAKES_CHARACTERS)
    return Answer(_Ideas(by_slot, tuple(surplus)), told)


def _ideas_in(text: str) -> tuple[list[_Idea], list[str]]:
    """Return every hypothesis that is well formed, and what is wrong with the others."""
    try:
        document: object = json.loads(text)
    except (ValueError, RecursionError):
        return [], ["it is no JSON"]
    fields = cast(dict[str, object], document) if isinstance(document, dict) else {}
    entries = fields.get("hypotheses")
    if not isinstance(entries, list):
        return [], ["it has no list `hypotheses`"]
    ideas: list[_Idea] = []
    mistakes: list[str] = []
    for place, entry in enumerate(cast(list[object], entries)):
        try:
            idea = _Idea.model_validate(entry)
        except ValidationError as error:
            mistakes.append(f"hypothesis {place}: {mistakes_of(error)}")
            continue
        if idea.family in FAMILIES:
            ideas.append(idea)
        else:
            mistakes.append(f"hypothesis {place}: {idea.family[:40]!r} is no family")
    return ideas, mistakes


def _known_techniques(briefing: Briefing, view: RoundView) -> frozenset[str]:
    """Return the ids that the planner was shown."""
    drawn = (one.technique.id for advice in view.advice for one in advice.drawn)
    return frozenset((*(one.id for one in briefing.facts.techniques), *drawn))


def _hypothesis(idea: _Idea, slot: Slot | None, known: frozenset[str]) -> Hypothesis:
    def short(text: str) -> str:
        return plain_beginning(text, MAX_HYPOTHESIS_CHARACTERS - 40)

    named = dict.fromkeys(idea.techniques)

    return Hypothesis(
        slot="" if slot is None else slot.id,
        family=idea.family,
        name=plain_beginning(idea.name, _NAME_CHARACTERS),
        hypothesis=short(idea.hypothesis),
        mechanism=short(idea.mechanism),
        expected_gain=min(max(idea.expected_gain, -1.0), _MOST_GAIN),
        risk=short(idea.risk),
        evidence=short(idea.evidence),
        parents=(0,) if slot is None else slot.parents,
        techniques=tuple(name for name in named if name in known)[:_MOST_TECHNIQUES],
    )
