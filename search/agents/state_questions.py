"""Questions to the learner about one program: in which state it is, and what to try in that state.

A model decides where the rules find several states equally near, and proposes techniques for a
state for which memory has none.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from pydantic import Field

from kopt.kernels.profile_result import ProfileResult
from kopt.kernels.record import ToldRecord
from kopt.search.knowledge.edits import AddEntry, AddTechnique, Edit, refusal
from kopt.search.knowledge.projection import extend
from kopt.search.knowledge.records import ProfileSignature
from kopt.search.store.taught import MemoryUpdate
from kopt.tools.facts.document_words import document_words
from kopt.tools.facts.fitting import cleaned
from kopt.tools.facts.profile_facts import profile_facts
from kopt.tools.facts.rendering import render
from kopt.tools.facts.wording import plain_beginning

from .agent_context import AgentContext
from .conversation import Answer, obtain_answer, parse_answer
from .knowledge_prompt import signature_facts, state_facts
from .memory_edits import MODEL_WEIGHT, WORDS, TechniqueWords, expectation, short, technique_of
from .prompt import fenced, render_prompt
from .tool_definitions import answer_schema
from .views import StateDecision, StateQuestion, TechniqueQuestion


class _StateAnswer(ToldRecord):
    state: str
    """Id of one of the states that were shown."""
    reason: str
    """By which number or fact, in a sentence."""


STATE_SCHEMA = answer_schema(_StateAnswer)


def decide_state(context: AgentContext, question: StateQuestion) -> StateDecision:
    """Return which of the rivals it is; the first of them where no usable answer came.

    Raises:
        CallFailed, BudgetSpent, Stopped: As `ModelClient.ask`; other failures are in the result.
    """
    known = tuple(state.id for state in question.rivals)
    rivals = [state_facts(state) for state in question.rivals]
    opening = context.start(
        "learner",
        question.id,
        render_prompt(
            "decide_state",
            {
                "signature": program_words(question.signature, question.profile),
                "states": fenced("states", render(cleaned({"states": rivals}))),
            },
        ),
        STATE_SCHEMA,
    )
    answer = obtain_answer(context.client, opening, lambda text: _read_state(text, known))
    if answer.value is None:
        return StateDecision(known[0], "rule", short(answer.mistakes))
    return StateDecision(answer.value.state, "model", short(answer.value.reason))


def program_words(signature: ProfileSignature, profile: ProfileResult | None) -> str:
    """Return what is known of a program: its signature, and its profile where there is one."""
    parts = [render(cleaned({"signature": signature_facts(signature)}))]
    if profile is not None:
        parts.append(fenced("profile", document_words(profile_facts(profile, "concise"))))
    return "\n\n".join(parts)


def _read_state(text: str, known: tuple[str, ...]) -> Answer[_StateAnswer]:
    answer = parse_answer(_StateAnswer, text)
    if (said := answer.value) is not None and said.state not in known:
        return Answer(None, f"{json.dumps(said.state[:60])} is none of {', '.join(known)}")
    return answer


MOST_PROPOSALS = 6
"""Most proposals for one state: a draw from many guesses is a guess."""
_SOURCE = "proposed for a state without techniques"


class _Proposal(ToldRecord):
    technique: str
    """Id of a known technique, or of one of `new_techniques`."""
    gain: float = Field(allow_inf_nan=False)
    """Guessed, as a fraction of speed: 0.1 for 10 %."""
    reason: str = Field(min_length=1)
    """What of the state it removes."""


class _ProposalsAnswer(ToldRecord):
    proposals: tuple[_Proposal, ...] = Field(min_length=1)
    """The most promising first."""
    new_techniques: tuple[TechniqueWords, ...]
    """Only what none of the known techniques covers."""


PROPOSALS_SCHEMA = answer_schema(_ProposalsAnswer)


def propose_techniques(context: AgentContext, question: TechniqueQuestion) -> MemoryUpdate:
    """Return what a model would try in a state, as entries of memory with cautious expectations.

    Raises:
        CallFailed, BudgetSpent, Stopped: As `ModelClient.ask`; other failures are in the result.
    """
    state = fenced("state", render(cleaned(state_facts(question.state))))
    opening = context.start(
        "learner",
        question.id,
        render_prompt(
            "propose_techniques",
            {
                "most": str(MOST_PROPOSALS),
                "state": state,
                "signature": program_words(question.signature, question.profile),
            },
        ),
        PROPOSALS_SCHEMA,
    )
    answer = obtain_answer(context.client, opening, partial(parse_answer, _ProposalsAnswer))
    if answer.value is None:
        return MemoryUpdate(why=short(answer.mistakes))
    return _accepted(answer.value, question)


def _accepted(said: _ProposalsAnswer, question: TechniqueQuestion) -> MemoryUpdate:
    """Return the proposals that memory can take, new techniques before their entries."""
    states = {**question.base.states, question.state.id: question.state}
    base = replace(question.base, states=states)
    named = dict.fromkeys(one.technique for one in said.proposals[:MOST_PROPOSALS])
    known = {*base.techniques, *(one.id for one in said.new_techniques)}
    edits: list[Edit] = []
    dropped = [f"{short(name)}: there is no such technique" for name in named if name not in known]
    for what, edit in _edits(said, question.state.id, [name for name in named if name in known]):
        why = refusal(edit, base, ())
        if why is None:
            edits.append(edit)
            base = extend(base, [(base.version, edit)], base.version)
        else:
            dropped.append(plain_beginning(f"{what}: {why}", WORDS))
    return MemoryUpdate(edits=tuple(edits), dropped=tuple(dropped))


def _edits(
    said: _ProposalsAnswer, state: str, named: Sequence[str]
) -> Iterator[tuple[str, AddTechnique | AddEntry]]:
    """Yield the edits with what they are about; a technique without a proposal is left out."""
    reasons = {one.technique: short(one.reason) for one in said.proposals}
    gains = {one.technique: one.gain for one in said.proposals}
    for new in said.new_techniques:
        if new.id in named:
            technique = technique_of(new, _SOURCE)
            reason = reasons[new.id]
            yield new.id, AddTechnique(technique=technique, reason=reason, author="model")
    for name in named:
        yield (
            name,
            AddEntry(
                state=state,
                techniques=(name,),
                gain=expectation(gains[name]),
                weight=MODEL_WEIGHT,
                reason=reasons[name],
                author="model",
            ),
        )
