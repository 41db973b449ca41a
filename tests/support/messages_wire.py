"""The wire format of the Messages API, as far as a scripted model needs it.

Pure functions over decoded JSON. What the real service refuses is refused here in its words, so
that a client that sends a broken history fails in a test too. `fake_messages.py` puts it behind a
port.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_PIECE_CHARACTERS = 24  # a block comes in several deltas, as from the service


@dataclass(frozen=True)
class ToolCall:
    """One call that the model asks for."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Turn:
    """What the model says next: some text, then calls; without calls the conversation ends."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class Exchange:
    """One call of the conversation with what the client sent back."""

    call: ToolCall
    text: str
    is_error: bool


def exchanges(messages: list[dict[str, Any]]) -> tuple[Exchange, ...]:
    """Return every call of a history that has a result, in the order of the calls."""
    results = {block["tool_use_id"]: block for block in _blocks(messages, "user", "tool_result")}
    return tuple(
        Exchange(
            ToolCall(block["name"], block["input"]),
            _text(results[block["id"]].get("content", "")),
            bool(results[block["id"]].get("is_error", False)),
        )
        for block in _blocks(messages, "assistant", "tool_use")
        if block["id"] in results
    )


def complaint(body: dict[str, Any]) -> str | None:
    """Return why the service answers this request with 400; None if it would take it."""
    for field in ("model", "max_tokens", "messages"):
        if field not in body:
            return f"{field}: Field required"
    messages: list[dict[str, Any]] = body["messages"]
    if not messages or messages[0]["role"] != "user":
        return 'messages: first message must use the "user" role'
    for at, message in enumerate(messages):
        asked = {block["id"] for block in _blocks([message], "assistant", "tool_use")}
        after = messages[at + 1 : at + 2]
        got = {block["tool_use_id"] for block in _blocks(after, "user", "tool_result")}
        if asked - got:
            return (
                f"messages.{at}: `tool_use` ids were found without `tool_result` blocks "
                f"immediately after: {', '.join(sorted(asked - got))}"
            )
        if got - asked:
            return (
                f"messages.{at + 1}: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{', '.join(sorted(got - asked))}"
            )
    return None


def reply(turn: Turn, model: str, number: int) -> dict[str, Any]:
    """Return `turn` as the message that answers request `number`."""
    content: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
    content += [
        {
            "type": "tool_use",
            "id": f"toolu_{number:04}_{at}",
            "name": call.name,
            "input": call.arguments,
        }
        for at, call in enumerate(turn.calls)
    ]
    return {
        "id": f"msg_{number:04}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": "tool_use" if turn.calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 50, "output_tokens": 7},
    }


def stream(message: dict[str, Any]) -> Iterator[bytes]:
    """Yield `message` as the server-sent events of a streamed reply."""
    head: dict[str, Any] = {**message, "content": [], "stop_reason": None}
    yield _event({"type": "message_start", "message": head})
    yield _event({"type": "ping"})
    for index, block in enumerate(message["content"]):
        is_call = block["type"] == "tool_use"
        empty: dict[str, Any] = {**block, "input": {}} if is_call else {**block, "text": ""}
        yield _event({"type": "content_block_start", "index": index, "content_block": empty})
        whole = json.dumps(block["input"]) if is_call else block["text"]
        for start in range(0, len(whole), _PIECE_CHARACTERS):
            piece = whole[start : start + _PIECE_CHARACTERS]
            delta = (
                {"type": "input_json_delta", "partial_json": piece}
                if is_call
                else {"type": "text_delta", "text": piece}
            )
            yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": end, "usage": message["usage"]})
    yield _event({"type": "message_stop"})


def error(kind: str, message: str) -> dict[str, Any]:
    """Return the body of a refused request."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def _event(data: dict[str, Any]) -> bytes:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


def _blocks(messages: list[dict[str, Any]], role: str, kind: str) -> Iterator[dict[str, Any]]:
    for message in messages:
        content: str | list[dict[str, Any]] = message["content"]
        if message["role"] == role and not isinstance(content, str):
            yield from (block for block in content if block["type"] == kind)


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")
