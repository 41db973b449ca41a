"""A desk whose model says what a script says, and replies for such scripts."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from kopt.search.models.call_ledger import RecordedCall
from kopt.search.models.errors import CallFailed
from kopt.search.models.model import ModelReply, ModelRequest, Usage


@dataclass
class ScriptedDesk:
    """Answers the calls in their order, and remembers them by id as the real desk does."""

    script: list[ModelReply | CallFailed]
    calls: dict[str, RecordedCall] = field(default_factory=dict[str, RecordedCall])
    asked: list[ModelRequest] = field(default_factory=list[ModelRequest])
    """Every call that was not answered before."""

    def ask(self, request: ModelRequest) -> ModelReply:
        """Return the recorded reply, or the next one of the script."""
        recorded = self.calls.get(request.id)
        if recorded is not None:
            return recorded.reply
        assert self.script, f"nothing is scripted for {request.id}"
        self.asked.append(request)
        reply = self.script.pop(0)
        if isinstance(reply, CallFailed):
            raise reply
        self.calls[request.id] = RecordedCall(request.id, request, reply)
        return reply

    def last_of(self, prefix: str) -> RecordedCall | None:
        """Return the answered call with the highest turn among the ids `prefix/N`."""
        turns = [id for id in self.calls if id.rpartition("/")[0] == prefix]
        last = max(turns, key=lambda id: int(id.rpartition("/")[2]), default=None)
        return None if last is None else self.calls[last]

    @property
    def told(self) -> list[Any]:
        """What was said in answer to the replies: the blocks of each user message but the first."""
        messages = self.asked[-1].messages[1:]
        return [message["content"] for message in messages if message["role"] == "user"]


def desk(*script: ModelReply | CallFailed) -> ScriptedDesk:
    """Return a desk with this script."""
    return ScriptedDesk(list(script))


def reply(stop: str, *blocks: dict[str, Any], refusal: str | None = None) -> ModelReply:
    """Return a reply that ends by `stop`."""
    return ModelReply(
        content=blocks,
        stop=stop,
        usage=Usage(input_tokens=10, output_tokens=5),
        model="scripted",
        request_id=None,
        latency_s=0.0,
        refusal=refusal,
    )


def says(text: str) -> ModelReply:
    """Return a reply of text only."""
    return reply("end_turn", {"type": "text", "text": text})


def uses(*calls: tuple[str, Any], stop: str = "tool_use") -> ModelReply:
    """Return a reply that asks for tools; the calls are named call_0, call_1, ..."""
    blocks = [
        {"type": "tool_use", "id": f"call_{place}", "name": name, "input": arguments}
        for place, (name, arguments) in enumerate(calls)
    ]
    return reply(stop, {"type": "thinking", "thinking": "", "signature": "s"}, *blocks)


def submits(source: str, note: str = "wider loads") -> ModelReply:
    """Return a reply that hands in a candidate."""
    return uses(("submit_candidate", {"source": source, "note": note}))


def failure(kind: str) -> CallFailed:
    """Return a call without an answer."""
    return CallFailed(kind, "the service said no")  # type: ignore[arg-type]  # of a test's table


def heads(requests: Sequence[ModelRequest]) -> list[bool]:
    """Return of each request but the first whether it only appends to the one before."""
    pairs = pairwise(requests)
    return [late.messages[: len(early.messages)] == early.messages for early, late in pairs]
