"""A headless session of Claude Code as a document for people, and what of it has to stay the same.

Reads the client's `stream-json` and writes Markdown. Long values are cut in the document, never a
field; so the outline (tools, statuses, argument names, field names) can be read back from it and
compared with another session, whose ids, times and numbers differ.
"""

import json
import re
from dataclasses import dataclass, replace
from typing import Any, cast

import yaml

_PREFIX = "mcp__kopt__"
_MAX_TEXT_LINES = 14
_MAX_ITEMS = 4
_FACTS = re.compile(r"(status|step): \w+\n")
_HEADING = re.compile(r"^### \d+\. `(\w+)`: (.+)$", re.MULTILINE)
_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Call:
    """One call of the session with what came back."""

    said: str
    """What the model wrote before it."""
    tool: str
    arguments: dict[str, Any]
    reply: dict[str, Any]

    @property
    def tokens(self) -> int:
        """What the reply costs a model: its characters as compact JSON / 4."""
        return len(json.dumps(self.reply, ensure_ascii=False, separators=(",", ":"))) // 4

    @property
    def outcome(self) -> str:
        """The reply's status, with the verdict where it has one."""
        return outcome_of(self.reply)


@dataclass(frozen=True)
class Session:
    """What the client's stream tells."""

    client: str
    """Name and version."""
    server: str
    """How the client calls the state of its connection to kopt."""
    tools: tuple[str, ...]
    """The tools of kopt that the client knows."""
    calls: tuple[Call, ...]
    closing: str
    """The model's last words."""


@dataclass(frozen=True)
class CallOutline:
    """What of a call does not depend on the machine or the day."""

    tool: str
    outcome: str
    arguments: tuple[str, ...]
    fields: tuple[str, ...]


def read_session(stream: str) -> Session:
    """Return the session in the lines of `stream`; waits for a job belong to the call before."""
    events = [json.loads(line) for line in stream.splitlines()]
    head = next(e for e in events if e["type"] == "system" and e["subtype"] == "init")
    blocks = [
        block
        for event in events
        if event["type"] in ("assistant", "user")
        for block in event["message"]["content"]
    ]
    replies = {b["tool_use_id"]: b["content"] for b in blocks if b["type"] == "tool_result"}
    calls: list[Call] = []
    said = ""
    for block in blocks:
        if block["type"] == "text":
            said = block["text"]
        elif block["type"] == "tool_use":
            tool = block["name"].removeprefix(_PREFIX)
            reply = reply_facts(_text(replies[block["id"]]))
            if tool == "job_wait" and calls:
                calls[-1] = replace(calls[-1], reply=reply)
            else:
                calls.append(Call(said, tool, block["input"], reply))
            said = ""
    return Session(
        client=f"Claude Code {head['claude_code_version']}",
        server=next((s["status"] for s in head["mcp_servers"] if s["name"] == "kopt"), "absent"),
        tools=tuple(t.removeprefix(_PREFIX) for t in head["tools"] if t.startswith(_PREFIX)),
        calls=tuple(calls),
        closing=next(str(e.get("result", "")) for e in reversed(events) if e["type"] == "result"),
    )


def outcome_of(reply: dict[str, Any]) -> str:
    """Return a reply's status, with the verdict where it has one; "done" without any."""
    words = (reply.get("status"), reply.get("verdict"))
    return ", ".join(str(word) for word in words if word) or "done"


def reply_facts(text: str) -> dict[str, Any]:
    """Return the facts in `text`; {"text": ...} where there are none.

    Claude Code hands on structured content as one line of JSON, links to resources as lines of
    their own, and an error as its text; opencode hands on the text, which is YAML.
    """
    if _FACTS.match(text):
        read: dict[str, Any] = yaml.safe_load(text)
        return read
    for line in text.splitlines():
        if line.startswith("{"):
            facts: dict[str, Any] = json.loads(line)
            return facts
    return {"text": text}


def render(session: Session, introduction: str, project: str) -> str:
    """Return the document; `project`, a path of the day, is written as `~/project`."""
    parts = [introduction.strip()]
    for number, call in enumerate(session.calls, 1):
        parts.append(f"### {number}. `{call.tool}`: {call.outcome}")
        if call.said:
            parts.append(call.said)
        parts += [_yaml(call.arguments), f"The reply, {call.tokens:,} tokens:", _yaml(call.reply)]
    parts += ["### The end", session.closing]
    return "\n\n".join(parts).replace(project, "~/project") + "\n"


def outline(document: str) -> tuple[CallOutline, ...]:
    """Return what of the calls in a rendered document has to stay the same."""
    headings = list(_HEADING.finditer(document))
    ends = [heading.start() for heading in headings[1:]] + [len(document)]
    found: list[CallOutline] = []
    for heading, end in zip(headings, ends, strict=True):
        blocks = _BLOCK.findall(document, heading.end(), end)
        arguments, fields = (tuple(yaml.safe_load(block) or ()) for block in blocks)
        found.append(CallOutline(heading[1], heading[2], arguments, fields))
    return tuple(found)


class _Dumper(yaml.SafeDumper):
    """Writes text of several lines as a literal block, and no anchors."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(_: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def _yaml(value: dict[str, Any]) -> str:
    text = yaml.dump(
        _shortened(value), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110
    )
    return f"```yaml\n{text}```"


def _shortened(value: Any) -> Any:
    if isinstance(value, dict):
        table = cast("dict[str, Any]", value)
        return {key: _shortened(item) for key, item in table.items()}
    if isinstance(value, list):
        items: list[Any] = cast("Any", value)
        more = len(items) - _MAX_ITEMS
        kept = [_shortened(item) for item in items[:_MAX_ITEMS]]
        return [*kept, f"... {more} more"] if more > 0 else kept
    if isinstance(value, str):
        lines = value.splitlines()
        more = len(lines) - _MAX_TEXT_LINES
        cut = [*lines[:_MAX_TEXT_LINES], f"... {more} more lines"] if more > 0 else lines
        return "\n".join(line.rstrip() for line in cut)
    return value


def _text(content: str | list[dict[str, Any]]) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(block.get("text", "") for block in content)
