"""Asking for an answer of a given form: validated here again, repaired once, then given up.

The schema that goes with the call is the service's to enforce and not to be relied on: it knows
nothing of lengths, of ranges or of which slots there are.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from kopt.search.models.errors import CallFailed
from kopt.search.models.model import ModelReply
from kopt.tools.facts.wording import plain_beginning

from .conversation import Conversation, Desk, Opening, answered, said
from .prompt_files import render_prompt

MOST_REPAIRS = 1
_MOST_REPLIES = 6
"""Of one conversation, pauses included: a service that only ever pauses is not asked for ever."""

_REASON_CHARACTERS = 400
_FENCED = re.compile(r"```\w*\n(.*)\n```", re.DOTALL)

T = TypeVar("T")


@dataclass(frozen=True)
class Answer(Generic[T]):
    """What a model answered, as far as it could be read."""

    value: T | None
    """None: nothing of it can be used."""
    mistakes: str
    """What is wrong with it or why there is none; empty if it is all that was asked for."""


Read = Callable[[str], Answer[T]]
"""Reads the text of a reply; never raises."""


def obtain_answer(desk: Desk, opening: Opening, read: Read[T]) -> Answer[T]:
    """Return what the model answered at last; what is wrong with it is said to it once.

    Raises:
        CallFailed: No answer, and asking later or with another key might help.
        BudgetSpent: The budget does not allow the call.
        Stopped: The run is being stopped.
    """
    conversation = Conversation(desk, opening)
    answer: Answer[T] = Answer(None, "it only ever paused")
    while conversation.turn < _MOST_REPLIES:
        try:
            reply = conversation.next_reply()
        except CallFailed as error:
            if error.kind != "us":
                raise
            return Answer(None, str(error))
        if reply.stop == "pause_turn":
            conversation.go_on(reply)
            continue
        answer = _read(reply, read)
        if not answer.mistakes or not _can_be_repaired(reply):
            return answer
        if conversation.repairs == MOST_REPAIRS:
            return answer
        _repair(conversation, reply, answer.mistakes)
    return answer


def _read(reply: ModelReply, read: Read[T]) -> Answer[T]:
    match reply.stop:
        case "end_turn" | "stop_sequence" | "tool_use":
            return read(_bare(reply.text))
        case "max_tokens":
            return Answer(None, "the answer was cut off at its limit of tokens")
        case "refusal":
            why = plain_beginning(reply.refusal or "no reason", _REASON_CHARACTERS)
            return Answer(None, f"the model refused: {why}")
        case "model_context_window_exceeded":
            return Answer(None, "the conversation is longer than the model can read")
        case other:
            ending = plain_beginning(other, _REASON_CHARACTERS)
            return Answer(None, f"the reply ended for an unknown reason: {ending}")


def _bare(text: str) -> str:
    """Return a document without the fence that some gateways leave around it."""
    found = _FENCED.fullmatch(text.strip())
    return found[1] if found else text


def _can_be_repaired(reply: ModelReply) -> bool:
    return reply.stop in ("end_turn", "stop_sequence", "tool_use", "max_tokens")


def _repair(conversation: Conversation, reply: ModelReply, mistakes: str) -> None:
    if reply.stop == "max_tokens":
        conversation.go_on_without(said(render_prompt("repair_cut")))
        return
    told = said(render_prompt("repair_answer", {"mistakes": mistakes}))
    refused = [answered(one.id, "there are no tools here", True) for one in reply.tool_calls]
    conversation.go_on(reply, [*refused, told])
