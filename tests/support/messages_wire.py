"""The wire format of the Messages API, as far as a scripted model needs it.

Pure functions over decoded JSON. What the real service refuses is refused here in its words, so
that a client that sends a broken history fails in a test too. `fake_messages.py` puts it behind a
port.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
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
    thinking: str = ""
    """What it thinks before, as a summary."""
    stop: str | None = None
    """Why it stops, if not for its calls or because it has said everything."""
    refusal: tuple[str, str] | None = None
    """Category and explanation; the stop is a refusal then."""
    usage: Mapping[str, Any] = field(default_factory=lambda: DEFAULT_USAGE)


DEFAULT_USAGE: Mapping[str, Any] = {"input_tokens": 50, "output_tokens": 7}


def cached_usage(read: int, hour: int, five: int) -> dict[str, Any]:
    """Return the usage of a call that reads and writes the cache, besides the default."""
    split = {"ephemeral_1h_input_tokens": hour, "ephemeral_5m_input_tokens": five}
    return {
        **DEFAULT_USAGE,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": hour + five,
        "cache_creation": split,
    }


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
    for required in ("model", "max_tokens", "messages"):
        if required not in body:
            return f"{required}: Field required"
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
    content: list[dict[str, Any]] = []
    if turn.thinking:
        content.append({"type": "thinking", "thinking": turn.thinking, "signature": f"sig{number}"})
    if turn.text:
        content.append({"type": "text", "text": turn.text})
    content += [
        {
            "type": "tool_use",
            "id": f"toolu_{number:04}_{at}",
            "name": call.name,
            "input": call.arguments,
        }
        for at, call in enumerate(turn.calls)
    ]
    message = {
        "id": f"msg_{number:04}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": turn.stop or ("tool_use" if turn.calls else "end_turn"),
        "stop_sequence": None,
        "usage": dict(turn.usage),
    }
    if turn.refusal is not None:
        category, explanation = turn.refusal
        details = {"type": "refusal", "category": category, "explanation": explanation}
        message |= {"stop_reason": "refusal", "stop_details": details}
    return message


def stream_events(message: dict[str, Any]) -> Iterator[bytes]:
    """Yield `message` as the server-sent events of a streamed reply."""
    head: dict[str, Any] = {**message, "content": [], "stop_reason": None, "stop_details": None}
    yield event({"type": "message_start", "message": head})
    yield event({"type": "ping"})
    for index, block in enumerate(message["content"]):
        empty, deltas = _pieces(block)
        yield event({"type": "content_block_start", "index": index, "content_block": empty})
        for delta in deltas:
            yield event({"type": "content_block_delta", "index": index, "delta": delta})
        yield event({"type": "content_block_stop", "index": index})
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    end["stop_details"] = message.get("stop_details")
    usage = {k: v for k, v in message["usage"].items() if k != "cache_creation"}
    yield event({"type": "message_delta", "delta": end, "usage": usage})
    yield event({"type": "message_stop"})


def error_document(kind: str, message: str) -> dict[str, Any]:
    """Return the body of a refused request."""
    return {"type": "error", "error": {"type": kind, "message": message}}


def event(data: dict[str, Any]) -> bytes:
    """Return one server-sent event."""
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n".encode()


def _pieces(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a block as it begins and what is added to it, in pieces."""
    if block["type"] == "tool_use":
        cut = _cut(json.dumps(block["input"]))
        return {**block, "input": {}}, [
            {"type": "input_json_delta", "partial_json": piece} for piece in cut
        ]
    kind: str = block["type"]
    deltas = [{"type": f"{kind}_delta", kind: piece} for piece in _cut(block[kind])]
    empty: dict[str, Any] = {**block, kind: ""}
    if kind == "thinking":
        empty["signature"] = ""
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    return empty, deltas


def _cut(whole: str) -> list[str]:
    steps = range(0, len(whole), _PIECE_CHARACTERS)
    return [whole[start : start + _PIECE_CHARACTERS] for start in steps]


def _blocks(messages: list[dict[str, Any]], role: str, kind: str) -> Iterator[dict[str, Any]]:
    for message in messages:
        content: str | list[dict[str, Any]] = message["content"]
        if message["role"] == role and not isinstance(content, str):
            yield from (block for block in content if block["type"] == kind)


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block["text"] for block in content if block["type"] == "text")
