"""Setting one value in a JSON text by the smallest edit, so that comments and layout stay.

A new member goes below the last one, at its indentation; a value that differs is replaced in its
place. Nothing else of the text changes.
"""

import json
from typing import Any

from .json_tree import JsonNode, MalformedText, is_object, read_tree

DEFAULT_INDENT = "  "
BLANKS = " \t\r\n"


def set_json(text: str, keys: tuple[str, ...], value: Any) -> str:
    """Return `text` with `value` below `keys`.

    Where both the old and the new value are objects, only members that differ are touched, and
    members that `value` does not have stay.

    Raises:
        MalformedText: It is not JSON, or something on the way to the last key is no object.
    """
    if not text.strip("\ufeff \t\r\n"):
        nested = _nested(keys, value)
        return f"{text[:1] if text.startswith(chr(0xFEFF)) else ''}{_render(nested, '', '  ')}\n"
    node = read_tree(text)
    if not is_object(node.value):
        raise MalformedText("the file holds no object")
    for depth, key in enumerate(keys):
        member = node.member(key)
        if member is None:
            return _insert(text, node, key, _nested(keys[depth + 1 :], value))
        node = member.node
        if depth < len(keys) - 1 and not is_object(node.value):
            raise MalformedText(f"{key!r} is no object")
    if is_object(value) and is_object(node.value):
        for key, below in value.items():
            text = set_json(text, (*keys, key), below)
        return text
    return text if node.value == value else _replace(text, node, value)


def replace_json(text: str, keys: tuple[str, ...], value: Any) -> str:
    """Return `text` with exactly `value` below `keys`, which must be there.

    Raises:
        MalformedText: It is not JSON, or has no such key.
    """
    node = read_tree(text)
    for key in keys:
        member = node.member(key)
        if member is None:
            raise MalformedText(f"no {key!r}")
        node = member.node
    return _replace(text, node, value)


def _replace(text: str, node: JsonNode, value: Any) -> str:
    new = _render(value, _line_indent(text, node.start), _indent_unit(text))
    return text[: node.start] + new + text[node.end :]


def _insert(text: str, parent: JsonNode, key: str, value: Any) -> str:
    """Put a member that is not there yet behind the last one."""
    unit, outer = _indent_unit(text), _line_indent(text, parent.start)
    head, tail = text[: parent.end - 1], text[parent.end - 1 :]
    if not parent.members:
        inner = outer + unit
        new = f"{inner}{json.dumps(key)}: {_render(value, inner, unit)}"
        return f"{head.rstrip(BLANKS)}\n{new}\n{outer}{tail}"
    first, last = parent.members[0], parent.members[-1].node
    if parent.comma_at is None:
        head = f"{text[: last.end]},{text[last.end : parent.end - 1]}"
    closing = "," if parent.comma_at is not None else ""
    kept = head.rstrip(BLANKS)
    if "\n" not in text[parent.start : first.start] and "\n" not in head[len(kept) :]:
        return f"{kept} {json.dumps(key)}: {json.dumps(value)}{closing}{head[len(kept) :]}{tail}"
    inner = _line_indent(text, first.start)
    if "\n" not in text[parent.start : first.start]:
        inner = outer + unit
    new = f"{inner}{json.dumps(key)}: {_render(value, inner, unit)}{closing}"
    return f"{kept}\n{new}\n{outer}{tail}"


def _nested(keys: tuple[str, ...], value: Any) -> Any:
    for key in reversed(keys):
        value = {key: value}
    return value


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_unit(text: str) -> str:
    """Return what the first member of the file is indented by."""
    root = read_tree(text)
    if not root.members or "\n" not in text[root.start : root.members[0].start]:
        return DEFAULT_INDENT
    return _line_indent(text, root.members[0].start) or DEFAULT_INDENT


def _render(value: Any, indent: str, unit: str) -> str:
    """Return `value` as JSON whose first line starts where it is put; lists stay on one line."""
    if not is_object(value) or not value:
        return json.dumps(value, ensure_ascii=False)
    inner = indent + unit
    members = (
        f"{inner}{json.dumps(key, ensure_ascii=False)}: {_render(below, inner, unit)}"
        for key, below in value.items()
    )
    return "{\n" + ",\n".join(members) + f"\n{indent}}}"
