"""One conversation with a model: calls with ids of their own, a history that only ever grows.

All of its state is in its messages. A conversation that was interrupted is therefore taken up from
its last recorded call: what was asked, answered and done before is neither paid nor done again.

`obtain_answer` asks for an answer of a given form: validated here again, repaired once, then given
up. The schema that goes with the call is not relied on: it knows nothing of lengths, of ranges or
of which slots there are.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from pydantic import ValidationError

from kopt.config.search_settings import Role, RoleSettings
from kopt.kernels.record import ToldRecord
from kopt.search.models.call_ledger import RecordedCall
from kopt.search.models.errors import CallFailed
from kopt.search.models.model import ModelReply, ModelRequest, SystemBlock, Tool
from kopt.tools.facts.wording import plain_beginning

from .prompt import render_prompt
from .tool_definitions import mistakes_of

Message = dict[str, Any]
"""A message as the Messages API takes it."""
Block = dict[str, Any]
"""One block of a message's content."""


class CallClient(Protocol):
    """The client of a run (`models/client.py`): it records, pays and remembers every call."""

    def ask(self, request: ModelRequest) -> ModelReply:
        """Return the answer, the recorded one if this call was made before.

        Raises:
            CallFailed: There is none.
            BudgetSpent: The call might cost more than is left.
            Stopped: The run is being stopped.
        """
        ...

    def last_of(self, prefix: str) -> RecordedCall | None:
        """Return the answered call with the highest turn among the ids `prefix/N`."""
        ...


@dataclass(frozen=True)
class ConversationStart:
    """How a conversation begins, and what stays the same in it."""

    prefix: str
    """Prefix of the ids of its calls: `r2/b3/coder`."""
    role: Role
    settings: RoleSettings
    system: tuple[SystemBlock, ...]
    text: str
    """The first message."""
    tools: tuple[Tool, ...] = ()
    answer_schema: dict[str, Any] | None = None


class Conversation:
    """The state of one conversation: whose turn it is and all that was said."""

    def __init__(self, client: CallClient, opening: ConversationStart) -> None:
        """Take up the conversation where it was left, or begin it."""
        self._client = client
        self._opening = opening
        self._messages: tuple[Message, ...] = (_user([said(opening.text)]),)
        self._turn = 0
        self._recorded: ModelReply | None = None
        last = client.last_of(opening.prefix)
        if last is not None:
            self._messages = last.request.messages
            self._turn = int(last.request.id.rpartition("/")[2])
            self._recorded = last.reply

    @property
    def turn(self) -> int:
        """How many replies came before the next one."""
        return self._turn

    @property
    def repairs(self) -> int:
        """How often the model was told what was wrong with its reply."""
        return self._count("text") - 1

    @property
    def tool_uses(self) -> int:
        """How many calls of tools were answered."""
        return self._count("tool_result")

    def next_reply(self) -> ModelReply:
        """Return what the model says next; raises what `CallClient.ask` raises."""
        if self._recorded is not None:
            return self._recorded
        return self._client.ask(
            ModelRequest(
                id=f"{self._opening.prefix}/{self._turn}",
                role=self._opening.role,
                model=self._opening.settings.model,
                effort=self._opening.settings.effort,
                max_output_tokens=self._opening.settings.max_output_tokens,
                system=self._opening.system,
                tools=self._opening.tools,
                messages=self._messages,
                answer_schema=self._opening.answer_schema,
            )
        )

    def go_on(self, reply: ModelReply, blocks: Iterable[Block] = ()) -> None:
        """Keep `reply` as it is and say `blocks`; none sends the conversation back as it is.

        Blank texts are left out, and so is a reply of nothing else: no service takes them back.
        """
        kept = [dict(block) for block in reply.content if not _is_blank(block)]
        said_now = list(blocks)
        self._extend(
            *([{"role": "assistant", "content": kept}] if kept else []),
            *([_user(said_now)] if said_now else []),
        )

    def go_on_without(self, block: Block) -> None:
        """Leave the last reply out, which was cut, and say `block`.

        It may end in half a thought or half a call, which no service takes back.
        """
        self._extend(_user([block]))

    def _extend(self, *messages: Message) -> None:
        self._messages = (*self._messages, *messages)
        self._turn += 1
        self._recorded = None

    def _count(self, kind: str) -> int:
        """Return how many blocks of this kind the user has said."""
        said_by_user = (one["content"] for one in self._messages if one["role"] == "user")
        return sum(block["type"] == kind for content in said_by_user for block in content)


def said(text: str) -> Block:
    """Return a block of text."""
    return {"type": "text", "text": text}


def answered(call_id: str, text: str, is_error: bool) -> Block:
    """Return the answer to one call of a tool."""
    answer: Block = {"type": "tool_result", "tool_use_id": call_id, "content": text}
    return {**answer, "is_error": True} if is_error else answer


def _is_blank(block: Block) -> bool:
    return block["type"] == "text" and not block["text"].strip()


def _user(blocks: list[Block]) -> Message:
    return {"role": "user", "content": blocks}


MOST_REPAIRS = 1
_MOST_REPLIES = 6
"""Most replies of one conversation, pauses included: a service may only ever pause."""

_REASON_CHARACTERS = 400
_FENCED = re.compile(r"```\w*\n(.*)\n```", re.DOTALL)

T = TypeVar("T")


@dataclass(frozen=True)
class Answer(Generic[T]):
    """An answer of a model, as far as it could be parsed."""

    value: T | None
    """None: nothing of it can be used."""
    mistakes: str
    """Mistakes in the answer, or why there is none; empty if the answer is complete."""


A = TypeVar("A", bound=ToldRecord)
Read = Callable[[str], Answer[T]]
"""Reads the text of a reply; never raises."""


def parse_answer(form: type[A], text: str) -> Answer[A]:
    """Return the answer that `text` is in the form of a record, or what is wrong with it."""
    try:
        return Answer(form.model_validate_json(text), "")
    except ValidationError as error:
        return Answer(None, mistakes_of(error))


def obtain_answer(client: CallClient, opening: ConversationStart, read: Read[T]) -> Answer[T]:
    """Return what the model answered at last; what is wrong with it is said to it once.

    Raises:
        CallFailed, BudgetSpent, Stopped: As `ModelClient.ask`; other failures are in the result.
    """
    conversation = Conversation(client, opening)
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
            return read(_unfenced(reply.text))
        case "max_tokens":
            return Answer(None, "the answer was cut off at its limit of tokens")
        case _:
            return Answer(None, why_ended(reply))


def why_ended(reply: ModelReply) -> str:
    """Return why a conversation ends with a reply that holds neither text nor calls to go on."""
    if reply.stop == "refusal":
        why = plain_beginning(reply.refusal or "no reason", _REASON_CHARACTERS)
        return f"the model refused: {why}"
    if reply.stop == "model_context_window_exceeded":
        return "the conversation is longer than the model can read"
    return (
        f"the reply ended for an unknown reason: {plain_beginning(reply.stop, _REASON_CHARACTERS)}"
    )


def _unfenced(text: str) -> str:
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
