"""Getting a candidate out of a conversation, however it ends: one failure costs one branch.

The candidate comes as the argument of a tool, so that it needs no quoting; a model that shows it in
a fenced block instead is understood, too. Nothing that the model claims about it is believed: the
evaluation judges it.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import Field, ValidationError

from kopt.config.errors import ToolError
from kopt.kernels.candidate import MAX_HYPOTHESIS_CHARACTERS, candidate_of_text
from kopt.kernels.record import ToldRecord
from kopt.search.models.errors import CallFailed
from kopt.search.models.model import ModelReply, Tool, ToolCall
from kopt.tools.facts.wording import plain

from .conversation import (
    Block,
    CallClient,
    Conversation,
    ConversationStart,
    answered,
    said,
    why_ended,
)
from .prompt import render_prompt
from .tool_definitions import define_tool, mistakes_of
from .views import GaveUp, WrittenCandidate

MAX_SUBMITTED_BYTES = 128 * 1024
"""Longest source that a model may hand in: many calls read it again as a parent."""
MOST_REPAIRS = 1
SPARE_REPLIES = 4
"""Beyond one for each use of a tool: submissions that are turned away, repairs, pauses."""
_FENCED = re.compile(r"^(`{3,})[^`\n]*\n(.*?)^\1", re.MULTILINE | re.DOTALL)
_FIRST = "/* kopt: 1"


class _Submission(ToldRecord):
    source: str = Field(min_length=1)
    """The complete file, from `/* kopt: 1` on."""
    note: str = ""
    """What was changed and why it should be faster, in one to three sentences."""


SUBMIT = define_tool(
    "submit_candidate",
    "Hand in the complete candidate and end this task. It is built, checked against the oracle and"
    " timed; what you say about it decides nothing.",
    _Submission,
)


@dataclass(frozen=True)
class ToolAnswer:
    """The answer of a tool to one call."""

    text: str
    is_error: bool = False


@dataclass(frozen=True)
class Author:
    """The conversation that writes a candidate, with its tools and its parents' sources."""

    opening: ConversationStart
    """Its tools are `SUBMIT` and those that `use` knows."""
    use: Callable[[ToolCall], ToolAnswer]
    """Uses a tool; never raises for what the model asks."""
    known: frozenset[str]
    """Sources that are refused as unchanged: those of the parents."""


def offered(tools: Sequence[Tool]) -> tuple[Tool, ...]:
    """Return what an author is offered: `tools`, and to hand in."""
    return (*tools, SUBMIT)


def obtain_candidate(desk: CallClient, author: Author) -> WrittenCandidate | GaveUp:
    """Return the candidate that the model hands in, or why there is none.

    Raises:
        CallFailed, BudgetSpent, Stopped: As `ModelClient.ask`; other failures are in the result.
    """
    conversation = Conversation(desk, author.opening)
    most = author.opening.settings.tool_calls + SPARE_REPLIES
    while conversation.turn < most:
        try:
            reply = conversation.next_reply()
        except CallFailed as error:
            if error.kind != "us":
                raise
            return GaveUp("call_failed", str(error))
        ending = _go_on(conversation, reply, author)
        if ending is not None:
            return ending
    return GaveUp("malformed", f"no candidate was handed in within {most} replies")


def _go_on(
    conversation: Conversation, reply: ModelReply, author: Author
) -> WrittenCandidate | GaveUp | None:
    """Return how the conversation ended; None after saying what is next."""
    match reply.stop:
        case "tool_use" | "end_turn" | "stop_sequence":
            if reply.tool_calls:
                return _answer_calls(conversation, reply, author)
            return _read_text(conversation, reply, author)
        case "pause_turn":
            conversation.go_on(reply)
            return None
        case "max_tokens":
            if conversation.repairs == MOST_REPAIRS:
                return GaveUp("truncated", "the reply was cut off at its limit of tokens, twice")
            conversation.go_on_without(said(render_prompt("repair_cut")))
            return None
        case "refusal":
            return GaveUp("refused", why_ended(reply))
        case "model_context_window_exceeded":
            return GaveUp("too_long", why_ended(reply))
        case _:
            return GaveUp("unknown_stop", why_ended(reply))


def _answer_calls(
    conversation: Conversation, reply: ModelReply, author: Author
) -> WrittenCandidate | None:
    """Return the candidate that was handed in; else answer every call."""
    submissions = {call.id: _submitted(call.arguments, author) for call in _submits(reply)}
    for one in submissions.values():
        if isinstance(one, WrittenCandidate):
            return one
    blocks: list[Block] = []
    left = author.opening.settings.tool_calls - conversation.tool_uses
    for call in reply.tool_calls:
        if call.id in submissions:
            blocks.append(answered(call.id, str(submissions[call.id]), True))
        elif left > 0:
            left -= 1
            answer = author.use(call)
            blocks.append(answered(call.id, answer.text, answer.is_error))
        else:
            blocks.append(answered(call.id, "no uses of tools are left: hand in your best", True))
    conversation.go_on(reply, blocks)
    return None


def _submits(reply: ModelReply) -> Sequence[ToolCall]:
    return [call for call in reply.tool_calls if call.name == SUBMIT.name]


def _read_text(
    conversation: Conversation, reply: ModelReply, author: Author
) -> WrittenCandidate | GaveUp | None:
    """Return the candidate in a fenced block; without one ask for it once."""
    shown = [found[2] for found in _FENCED.finditer(reply.text)]
    sources = [one for one in shown if one.lstrip().startswith(_FIRST)]
    mistakes = "No candidate was handed in."
    if sources:
        result = _submitted({"source": sources[-1].lstrip()}, author)
        if isinstance(result, WrittenCandidate):
            return result
        mistakes = result
    if conversation.repairs == MOST_REPAIRS:
        return GaveUp("malformed", f"no usable candidate: {mistakes}")
    told = said(render_prompt("repair_candidate", {"mistakes": mistakes}))
    conversation.go_on(reply, [told])
    return None


def _submitted(arguments: Any, author: Author) -> WrittenCandidate | str:
    """Return the candidate in the arguments of a submission, or what is wrong with them."""
    try:
        submission = _Submission.model_validate(arguments)
        source = candidate_of_text(submission.source).source
    except ValidationError as error:
        return mistakes_of(error)
    except ToolError as error:
        return str(error)
    if len(source.encode()) > MAX_SUBMITTED_BYTES:
        return f"the source is longer than {MAX_SUBMITTED_BYTES:,} bytes: write a shorter one"
    if source.strip() in author.known:
        return "this is the source that you were given, unchanged: change it, then hand it in"
    return WrittenCandidate(source, plain(submission.note)[:MAX_HYPOTHESIS_CHARACTERS])
