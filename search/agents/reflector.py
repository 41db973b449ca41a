"""The reflector: one call says what a round has taught; without a usable answer a rule does."""

from pydantic import Field, ValidationError

from kopt.kernels.record import ToldRecord
from kopt.tools.facts.wording import plain_beginning

from .agent_context import AgentContext, Briefing
from .conversation import Answer, ConversationStart, obtain_answer
from .plans import Lesson, Reflection
from .prompt import render_prompt
from .round_prompt import candidate_table, evidence_for, families_of, lessons_of, result_words
from .tool_definitions import answer_schema, mistakes_of
from .views import RoundView

_CHARACTERS = 1_000
"""Of one sentence that is kept: it stands in every later plan."""
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


def reflect(means: AgentContext, view: RoundView) -> Reflection:
    """Return what round `view.round`, which has been evaluated, teaches.

    Raises:
        CallFailed: No answer, and asking later or with another key might help.
        BudgetSpent: The budget does not allow the call.
        Stopped: The run is being stopped.
    """
    opening = _opening(means.briefing, view)
    answer = obtain_answer(means.desk, opening, lambda text: _read(text, view))
    if answer.value is None:
        return _by_rule(view, answer.mistakes)
    return answer.value


def _opening(briefing: Briefing, view: RoundView) -> ConversationStart:
    text = render_prompt(
        "reflect_round",
        {
            "round": str(view.round),
            "candidates": candidate_table(view, view.round),
            "families": families_of(view),
            "evidence": evidence_for(view, briefing),
            "lessons": lessons_of(view.reflections, view.members),
        },
    )
    return ConversationStart(
        prefix=f"r{view.round}/reflect",
        role="reflector",
        settings=briefing.settings.roles.reflector,
        system=briefing.system_blocks("reflector"),
        text=text,
        answer_schema=REFLECTION_SCHEMA,
    )


def _read(text: str, view: RoundView) -> Answer[Reflection]:
    try:
        said = _ReflectorAnswer.model_validate_json(text)
    except ValidationError as error:
        return Answer(None, mistakes_of(error))
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
