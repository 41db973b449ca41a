"""The reflector: one call says what a round has taught; without a usable answer a rule does."""

from pydantic import Field

from kopt.kernels.record import ToldRecord
from kopt.tools.facts.wording import plain_beginning

from .agent_context import AgentContext
from .conversation import Answer, ConversationStart, obtain_answer, parse_answer
from .plans import Lesson, Reflection
from .prompt import render_prompt
from .round_prompt import candidate_table, evidence_for, families_of, lessons_of, result_words
from .tool_definitions import answer_schema
from .views import RoundView

_CHARACTERS = 1_000
"""Most characters of one sentence that is kept: it stands in every later plan."""
_MOST = 12
"""Directions, and things to avoid."""


class _CandidateLesson(ToldRecord):
    candidate: str
    """Its name, as `r2b3`."""
    text: str = Field(min_length=1)
    """What its result says about its hypothesis."""


class _ReflectorAnswer(ToldRecord):
    digest: str = Field(min_length=1)
    """The round in two or three sentences."""
    lessons: tuple[_CandidateLesson, ...]
    directions: tuple[str, ...]
    """What to try next, the most promising first."""
    avoid: tuple[str, ...]
    """What not to repeat, each with the result that says so."""


REFLECTION_SCHEMA = answer_schema(_ReflectorAnswer)


def reflect(context: AgentContext, view: RoundView) -> Reflection:
    """Return what round `view.round`, which has been evaluated, teaches.

    Raises:
        CallFailed, BudgetSpent, Stopped: As `ModelClient.ask`; other failures are in the result.
    """
    opening = _opening(context, view)
    answer = obtain_answer(context.client, opening, lambda text: _read(text, view))
    if answer.value is None:
        return _by_rule(view, answer.mistakes)
    return answer.value


def _opening(context: AgentContext, view: RoundView) -> ConversationStart:
    text = render_prompt(
        "reflect_round",
        {
            "round": str(view.round),
            "candidates": candidate_table(view, view.round),
            "families": families_of(view),
            "evidence": evidence_for(view, context.briefing),
            "lessons": lessons_of(view.reflections, view.members),
        },
    )
    return context.start("reflector", f"r{view.round}/reflect", text, REFLECTION_SCHEMA)


def _read(text: str, view: RoundView) -> Answer[Reflection]:
    answer = parse_answer(_ReflectorAnswer, text)
    if (said := answer.value) is None:
        return Answer(None, answer.mistakes)
    known = {member.label: member.seq for member in view.members}
    lessons = [one for one in said.lessons if one.candidate in known]
    return Answer(
        Reflection(
            digest=plain_beginning(said.digest, _CHARACTERS),
            lessons=tuple(
                Lesson(candidate=known[one.candidate], text=plain_beginning(one.text, _CHARACTERS))
                for one in lessons
            ),
            directions=_short(said.directions),
            avoid=_short(said.avoid),
        ),
        "",
    )


def _short(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(plain_beginning(one, _CHARACTERS) for one in texts[:_MOST])


def _by_rule(view: RoundView, why: str) -> Reflection:
    """Return the bare results of the round."""
    own = sorted((one for one in view.members if one.round == view.round), key=lambda m: m.order)
    passed = sum(member.passed for member in own)
    return Reflection(
        digest=f"{passed} of {len(own)} candidates of round {view.round} passed.",
        lessons=tuple(Lesson(candidate=one.seq, text=result_words(one)) for one in own),
        directions=(),
        avoid=(),
        origin="fallback",
        why=why,
    )
