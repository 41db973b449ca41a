"""One turn of a conversation for a client that keeps none: a system prompt, texts and a schema.

The client gets the whole conversation each time, because nothing of it is kept but in the ledger:
so a turn that was killed is asked again as it was. Earlier turns stand between lines that carry a
digest of what is between them, which no text can hold of itself. The reply is one JSON object: the
calls of kopt's tools, or the answer.
"""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

from kopt.search.models.model import ModelRequest, Tool

from .strict_schema import restored, strict_schema

_RULES = (
    "# How you answer here\n"
    "You have no tools, files or network of your own. You take one turn at a time, as one JSON"
    " object of the schema that you were given. The conversation so far is in the message: how it"
    " began, then, each between two lines with the same mark, your earlier turns and what came"
    " back. Write the next turn alone."
)
_TOOLS = (
    "Your turn asks for uses of the tools below in `calls`; the results come back before your next"
    " turn. Calls that do not depend on each other go into one turn. `text` is for what is no call,"
    " else empty. Null leaves an argument out."
)
_MARK_DIGITS = 16


@dataclass(frozen=True)
class Turn:
    """What is asked of a client in one turn."""

    request: ModelRequest

    @property
    def system(self) -> str:
        """The system prompt: that of the role, how to answer, and what the tools do."""
        parts = [block.text for block in self.request.system] + [_RULES]
        if self.request.tools:
            parts.append(_TOOLS)
            parts.append("\n".join(f"- {t.name}: {t.description}" for t in self.request.tools))
        return "\n\n".join(parts)

    @property
    def texts(self) -> tuple[str, ...]:
        """The conversation; a later turn has the same beginning, as the provider's cache needs."""
        first, *later = self.request.messages
        names: dict[str, str] = {}
        return (
            *(block["text"] for block in _blocks(first) if block["type"] == "text"),
            *(text for message in later for text in _told(message, names)),
        )

    @property
    def schema(self) -> dict[str, Any]:
        """JSON schema of the reply, in the strict form."""
        if self.request.tools:
            calls = [_call_schema(tool) for tool in self.request.tools]
            return _object({"calls": {"type": "array", "items": {"anyOf": calls}}, "text": _TEXT})
        if self.request.answer_schema is not None:
            return strict_schema(self.request.answer_schema)
        return _object({"text": _TEXT})

    def content(self, value: object, text: str) -> tuple[dict[str, Any], ...]:
        """Return the blocks that a reply is.

        Args:
            value: The JSON that follows `schema`; None: there is none.
            text: What the client said instead.
        """
        if value is None:
            return _text_block(text)
        if self.request.tools:
            return self._calls(value)
        if self.request.answer_schema is not None:
            return _text_block(json.dumps(restored(self.request.answer_schema, value)))
        return _text_block(_text_of(value))

    def _calls(self, value: object) -> tuple[dict[str, Any], ...]:
        prefix = self.request.id.replace("/", "_")
        schemas = {tool.name: tool.input_schema for tool in self.request.tools}
        blocks: list[dict[str, Any]] = []
        text = _text_block(_text_of(value))
        told = cast(dict[str, object], value) if isinstance(value, dict) else {}
        calls = told.get("calls")
        for number, one in enumerate(cast(list[object], calls) if isinstance(calls, list) else ()):
            call = cast(dict[str, object], one) if isinstance(one, dict) else {}
            name = call.get("tool")
            if isinstance(name, str):
                given = restored(schemas.get(name, {}), call.get("arguments"))
                place = {"id": f"{prefix}_{number}", "name": name}
                blocks.append({"type": "tool_use", **place, "input": given})
        return (*text, *blocks)


_TEXT = {"type": "string"}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _call_schema(tool: Tool) -> dict[str, Any]:
    name = {"type": "string", "enum": [tool.name]}
    schema: dict[str, Any] = {"properties": {}, **tool.input_schema}
    return _object({"tool": name, "arguments": strict_schema(schema)})


def _text_of(value: object) -> str:
    """Return the text of a reply that follows the schema, or all of one that does not."""
    match value:
        case {"text": str(text)}:
            return text
        case _:
            return json.dumps(value)


def _text_block(text: str) -> tuple[dict[str, Any], ...]:
    return ({"type": "text", "text": text},) if text.strip() else ()


def _told(message: dict[str, Any], names: dict[str, str]) -> Iterator[str]:
    """Yield a later message in texts, and learn the names of its calls."""
    for block in _blocks(message):
        match block["type"], message["role"]:
            case "text", "assistant":
                yield _marked("your turn", block["text"])
            case "text", _:
                yield _marked("what you were told then", block["text"])
            case "tool_use", _:
                names[block["id"]] = block["name"]
                call = {"tool": block["name"], "arguments": block["input"]}
                yield _marked(f"your call {block['id']}", json.dumps(call, ensure_ascii=False))
            case "tool_result", _:
                of = f"{names.get(block['tool_use_id'], 'a tool')}, call {block['tool_use_id']}"
                wrong = ", which failed" if block.get("is_error") else ""
                yield _marked(f"result of {of}{wrong}", str(block["content"]))
            case _:
                continue  # thinking of another provider, which is bound to its model


def _marked(title: str, text: str) -> str:
    mark = hashlib.sha256(text.encode(errors="replace")).hexdigest()[:_MARK_DIGITS]
    return f"<<<{mark}: {title}>>>\n{text}\n<<<end of {mark}>>>"


def _blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content: str | list[dict[str, Any]] = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else content
