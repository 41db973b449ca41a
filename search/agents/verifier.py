"""Soft verification: a model reads the candidate that is to win for what no check can see.

It objects or it does not; it never approves. An objection stands on lines of the source, read
without comments: without one that quotes lines which are there, measurement alone decides.
"""

import re
from collections.abc import Iterator

from kopt.kernels.record import ToldRecord
from kopt.kernels.source_lexer import logical_lines
from kopt.tools.facts.check_facts import check_facts
from kopt.tools.facts.document_words import document_words
from kopt.tools.facts.fitting import cleaned
from kopt.tools.facts.rendering import render
from kopt.tools.facts.wording import Quoted, plain, plain_beginning

from .agent_context import AgentContext
from .conversation import Answer, obtain_answer, parse_answer
from .prompt import fenced, render_prompt
from .tool_definitions import answer_schema
from .views import FindingKind, Objection, SoftVerdict, SoftView, Verdict

_HEADER_END = "*/"
_LEAST_LETTERS = 3  # of a whole line: a bracket stands everywhere
_PART_LETTERS = 12  # of a part of one: `int` and `float sum` stand everywhere, too
_REMARK = re.compile(r"(?:^|(?<=\s))#.*?(?=\*/|$)")
_BLANKED = re.compile(r"(?!\\\r?\n)[^\n]")  # all but the ends of lines, and what continues them


def without_comments(source: str) -> str:
    """Return `source` with blanks in place of comments; of the header only its note goes."""
    end = source.find(_HEADER_END)
    body_from = 0 if end < 0 else end + len(_HEADER_END)
    shown = [_without_note(source[:body_from])]
    at = body_from
    for start, stop in _spans(source):
        if stop > at:
            shown += [_BLANKED.sub(" ", source[at:start]), source[max(start, at) : stop]]
            at = stop
    return "\n".join(line.rstrip() for line in "".join(shown).split("\n"))


def _without_note(header: str) -> str:
    """Return a header without what its author says: the note, and what follows a # sign."""
    shown: list[str] = []
    is_note = False
    for line in header.split("\n"):
        if line[:1].strip():
            is_note = line.startswith("note:")
        shown.append("" if is_note and not line.endswith(_HEADER_END) else _REMARK.sub("", line))
    return "\n".join(shown)


def quotes(source: str, line: str) -> bool:
    """Return whether `line`, whatever its blanks, is a line of `source` or a telling part of one.

    Args:
        source: As `without_comments` gives it.
        line: What is said to stand there.
    """
    wanted = _squeezed(line)
    letters = sum(letter.isalnum() for letter in wanted)
    rows = map(_squeezed, source.split("\n"))
    if letters < _PART_LETTERS:
        return letters >= _LEAST_LETTERS and wanted in rows
    return any(wanted in row for row in rows)


def _squeezed(text: str) -> str:
    return "".join(text.split())


def _spans(source: str) -> Iterator[tuple[int, int]]:
    """Yield where each token begins and ends; one with a splice inside ends where the next begins.

    So more is shown than is code where in doubt, never less.
    """
    tokens = [token for line in logical_lines(source) for token in line.tokens]
    nexts = [*(token.offset for token in tokens[1:]), len(source)]
    for token, following in zip(tokens, nexts, strict=True):
        end = token.offset + len(token.text)
        yield token.offset, end if source[token.offset : end] == token.text else following


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


def soft_verify(context: AgentContext, view: SoftView) -> SoftVerdict:
    """Return whether anything speaks against a candidate that has passed every check.

    Raises:
        CallFailed, BudgetSpent, Stopped: As `ModelClient.ask`; other failures are in the result.
    """
    source = without_comments(view.member.source)
    shown = fenced("source without comments", source)
    opening = context.start(
        "verifier",
        view.id,
        render_prompt(
            "verify_candidate",
            {
                "claims": _claims(view),
                "checked": _checked(view),
                "source": shown,
            },
        ),
        VERDICT_SCHEMA,
    )
    answer = obtain_answer(context.client, opening, lambda text: _read(text, source))
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
    answer = parse_answer(_VerifierAnswer, text)
    if (said := answer.value) is None:
        return Answer(None, answer.mistakes)
    findings = tuple(
        Objection(
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
