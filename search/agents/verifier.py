"""Soft verification: a model reads the candidate that is to win for what no check can see.

It objects or it does not; it never approves. An objection stands on lines of the source: without
one that quotes lines which are there, measurement alone decides.
"""

from pydantic import ValidationError

from kopt.kernels.record import ToldRecord
from kopt.tools.facts.check_facts import check_facts
from kopt.tools.facts.fitting import cleaned
from kopt.tools.facts.rendering import render
from kopt.tools.facts.wording import Quoted, plain, plain_beginning

from .answering import Answer, obtain_answer
from .bare_source import quotes, without_comments
from .candidate_words import document_words
from .conversation import Opening
from .fencing import fenced
from .learning_view import Finding, FindingKind, SoftVerdict, SoftView, Verdict
from .means import Means
from .prompt_files import render_prompt
from .tool_definitions import answer_schema, mistakes_of

_MOST_FINDINGS = 8
_MOST_LINES = 6
_CHARACTERS = 400
_NO_LINES = "its findings quote no line of the source"


class _Found(ToldRecord):
    kind: FindingKind
    lines: tuple[str, ...]
    """Lines of the source that show it, exactly as they stand."""
    text: str
    """What is wrong with them by the definition, and for which inputs."""


class _VerifierAnswer(ToldRecord):
    findings: tuple[_Found, ...]
    """The gravest first; none where nothing is wrong."""
    verdict: Verdict


VERDICT_SCHEMA = answer_schema(_VerifierAnswer)


def soft_verify(means: Means, view: SoftView) -> SoftVerdict:
    """Return whether anything speaks against a candidate that has passed every check.

    Raises:
        CallFailed: No answer, and asking later or with another key might help.
        BudgetSpent: The budget does not allow the call.
        Stopped: The run is being stopped.
    """
    source = without_comments(view.member.source)
    shown = fenced("source without comments", source)
    opening = Opening(
        prefix=view.id,
        role="verifier",
        settings=means.briefing.settings.roles.verifier,
        system=means.briefing.system_blocks("verifier"),
        text=render_prompt(
            "verify_candidate",
            {
                "claims": _claims(view),
                "checked": _checked(view),
                "source": shown,
            },
        ),
        answer_schema=VERDICT_SCHEMA,
    )
    answer = obtain_answer(means.desk, opening, lambda text: _read(text, source))
    why = plain_beginning(answer.mistakes, _CHARACTERS)
    if answer.value is None:
        return SoftVerdict(verdict="no_objection", origin="fallback", why=why)
    return answer.value.model_copy(update={"why": why})


def _claims(view: SoftView) -> str:
    member = view.member
    facts = {
        "name": member.label,
        "family": member.family,
        "tune": ", ".join(f"{name}={value}" for name, value in sorted(member.tune.items())),
    }
    return render(cleaned({name: Quoted(plain(text)) for name, text in facts.items() if text}))


def _checked(view: SoftView) -> str:
    if view.check is None:
        return "Every workload of its domain, with seeds that its author did not know."
    return fenced("full check", document_words(check_facts(view.check, "concise")))


def _read(text: str, source: str) -> Answer[SoftVerdict]:
    """Return the verdict as far as lines of `source` bear it out."""
    try:
        said = _VerifierAnswer.model_validate_json(text)
    except ValidationError as error:
        return Answer(None, mistakes_of(error))
    findings = tuple(
        Finding(
            kind=one.kind,
            lines=shown,
            text=plain_beginning(one.text, _CHARACTERS),
        )
        for one in said.findings[:_MOST_FINDINGS]
        if (shown := _shown_lines(one, source))
    )
    if said.verdict == "no_objection" or findings:
        return Answer(SoftVerdict(verdict=said.verdict, findings=findings), "")
    return Answer(SoftVerdict(verdict="no_objection"), f"{said.verdict} without proof: {_NO_LINES}")


def _shown_lines(found: _Found, source: str) -> tuple[str, ...]:
    """Return the lines that a finding quotes, as far as they are there."""
    quoted = (line for text in found.lines for line in text.split("\n"))
    there = (plain_beginning(line, _CHARACTERS) for line in quoted if quotes(source, line))
    return tuple(there)[:_MOST_LINES]
