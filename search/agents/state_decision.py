"""Which of several states a program is in, where the rules find them equally near."""

import json

from pydantic import ValidationError

from kopt.kernels.profile_result import ProfileResult
from kopt.kernels.record import ToldRecord
from kopt.search.knowledge.records import ProfileSignature
from kopt.tools.facts.fitting import cleaned
from kopt.tools.facts.profile_facts import profile_facts
from kopt.tools.facts.rendering import render

from .answering import Answer, obtain_answer
from .candidate_words import document_words
from .conversation import Opening
from .fencing import fenced
from .knowledge_words import signature_facts, state_facts
from .learner_answers import short
from .learning_view import StateDecision, StateQuestion
from .means import Means
from .prompt_files import render_prompt
from .tool_definitions import answer_schema, mistakes_of


class _StateAnswer(ToldRecord):
    state: str
    """Id of one of the states that were shown."""
    reason: str
    """By which number or fact, in a sentence."""


STATE_SCHEMA = answer_schema(_StateAnswer)


def decide_state(means: Means, question: StateQuestion) -> StateDecision:
    """Return which of the rivals it is; the first of them where no usable answer came.

    Raises:
        CallFailed: No answer, and asking later or with another key might help.
        BudgetSpent: The budget does not allow the call.
        Stopped: The run is being stopped.
    """
    known = tuple(state.id for state in question.rivals)
    rivals = [state_facts(state) for state in question.rivals]
    opening = Opening(
        prefix=question.id,
        role="learner",
        settings=means.briefing.settings.roles.learner,
        system=means.briefing.system_blocks("learner"),
        text=render_prompt(
            "decide_state",
            {
                "signature": program_words(question.signature, question.profile),
                "states": fenced("states", render(cleaned({"states": rivals}))),
            },
        ),
        answer_schema=STATE_SCHEMA,
    )
    answer = obtain_answer(means.desk, opening, lambda text: _read(text, known))
    if answer.value is None:
        return StateDecision(known[0], "rule", short(answer.mistakes))
    return StateDecision(answer.value.state, "model", short(answer.value.reason))


def program_words(signature: ProfileSignature, profile: ProfileResult | None) -> str:
    """Return what is known of a program: its signature, and its profile where there is one."""
    parts = [render(cleaned({"signature": signature_facts(signature)}))]
    if profile is not None:
        parts.append(fenced("profile", document_words(profile_facts(profile, "concise"))))
    return "\n\n".join(parts)


def _read(text: str, known: tuple[str, ...]) -> Answer[_StateAnswer]:
    try:
        said = _StateAnswer.model_validate_json(text)
    except ValidationError as error:
        return Answer(None, mistakes_of(error))
    if said.state not in known:
        return Answer(None, f"{json.dumps(said.state[:60])} is none of {', '.join(known)}")
    return Answer(said, "")
