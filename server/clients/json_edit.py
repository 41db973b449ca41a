"""Setting one value in a JSON text by the smallest edit, so that comments and layout stay.

A new member goes below the last one, at its indentation; a value that differs is replaced in its
place. Nothing else of the text changes. Python's own parser reads the text: comments and trailing
commas are blanked out before, which moves nothing. A key that stands twice in one object is
refused, because clients disagree on which one counts.
"""

import json
import re
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn, TypeGuard

DEFAULT_INDENT = "  "
BLANKS = " \t\r\n"
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_COMMENT = re.compile(rf"{_STRING}|(//[^\r\n]*|/\*.*?\*/)", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"{_STRING}|[{{\[]\s*,|(,)(?=\s*[}}\]])", re.DOTALL)
_KEY_OR_BRACE = re.compile(rf"({_STRING})(\s*:)?|[{{}}]", re.DOTALL)
_NOT_BLANK = re.compile(r"[^ \t\r\n]")


class MalformedText(ValueError):
    """The text is not what its format allows; the message has the line. Stays in this folder."""


class UnsafeEdit(ValueError):
    """An edit would not do what it is meant to. Stays in this folder."""


@dataclass(frozen=True)
class _Span:
    """One value: `text[start:end]`."""

    start: int
    end: int
    value: Any


@dataclass(frozen=True)
class _Members:
    """The members of the object at `text[start:end]`, in the order of the text."""

    start: int
    end: int
    values: dict[str, _Span]
    first_at: int
    """The place of the first key."""
    has_comma: bool
    """Whether a comma follows the last one."""


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether `value` is what a JSON object is read as."""
    return isinstance(value, dict)


def read_json(text: str, *, comments: bool = True) -> Any:
    """Return what `text` holds; without `comments` also trailing commas are refused.

    Raises:
        MalformedText: It is not JSON; the message says where.
    """
    return _parsed(_plain(text, comments))


def set_json(text: str, keys: tuple[str, ...], value: Any, *, exact: bool = False) -> str:
    """Return `text` with `value` below `keys`.

    Where both the old and the new value are objects, only members that differ are touched, and
    members that `value` does not have stay; unless `exact`, which replaces the whole.

    Raises:
        MalformedText: It is not JSON, or something on the way to the last key is no object.
    """
    if not text.strip("\ufeff \t\r\n"):
        whole = _render(nested(keys, value), "", DEFAULT_INDENT)
        return f"{text[:1] if text.startswith(chr(0xFEFF)) else ''}{whole}\n"
    found = _root(text)
    if not is_object(found.value):
        raise MalformedText("the file holds no object")
    for depth, key in enumerate(keys):
        members = _members(text, found.start)
        if key not in members.values:
            return _insert(text, members, key, nested(keys[depth + 1 :], value))
        found = members.values[key]
        if depth < len(keys) - 1 and not is_object(found.value):
            raise MalformedText(f"{key!r} is no object")
    if is_object(value) and is_object(found.value) and not exact:
        for key, below in value.items():
            text = set_json(text, (*keys, key), below)
        return text
    return text if found.value == value else _replace(text, found, value)


def _plain(text: str, comments: bool = True) -> str:
    """Return `text` as plain JSON of the same length: what JSON has not is blanked out."""
    if text.startswith("\ufeff"):  # a byte order mark is no part of JSON
        text = f" {text[1:]}"
    for pattern, what in ((_COMMENT, "comments"), (_TRAILING_COMMA, "comma after the last item")):
        found = next((match for match in pattern.finditer(text) if match[1]), None)
        if found is not None and not comments:
            raise MalformedText(f"{_place(text, found.start())}: this client allows no {what}")
        text = pattern.sub(_blanked, text)
    return text


def _blanked(match: re.Match[str]) -> str:
    return re.sub(r"[^\r\n]", " ", match[0]) if match[1] else match[0]


def _parsed(plain: str) -> Any:
    try:
        return json.loads(
            plain,
            object_pairs_hook=partial(_object, plain),
            parse_int=partial(_integer, plain),
            parse_constant=partial(_refuse_constant, plain),
        )
    except json.JSONDecodeError as error:
        seen = repr(plain[error.pos]) if error.pos < len(plain) else "the end of the file"
        what = f"{error.msg[:1].lower()}{error.msg[1:]}".removesuffix(" at").removesuffix(
            " starting"
        )
        raise MalformedText(f"{_place(plain, error.pos)}: {what}, found {seen}") from error
    except RecursionError as error:
        raise MalformedText("too many levels of objects and lists") from error


def _object(plain: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            place = _place(plain, _second_at(plain, key))
            raise MalformedText(f"{place}: the key {key!r} stands twice in one object")
        found[key] = value
    return found


def _second_at(plain: str, key: str) -> int:
    """Return where `key` stands for the second time in one object."""
    seen: list[bool] = []
    for token in _KEY_OR_BRACE.finditer(plain):
        if token[0] == "{":
            seen.append(False)
        elif token[0] == "}":
            seen.pop()
        elif token[2] and json.loads(token[1]) == key:
            if seen[-1]:
                return token.start()
            seen[-1] = True
    return 0


def _integer(plain: str, digits: str) -> int:
    try:
        return int(digits)
    except ValueError as error:  # Python limits how many digits it reads
        place = _literal_place(plain, digits)
        raise MalformedText(f"{place}: an integer of {len(digits)} digits is too long") from error


def _refuse_constant(plain: str, name: str) -> NoReturn:
    raise MalformedText(f"{_literal_place(plain, name)}: {name} is no value of JSON")


def _literal_place(plain: str, literal: str) -> str:
    """Return where `literal` first stands outside a string."""
    found = re.finditer(rf"{_STRING}|({re.escape(literal)})", plain)
    return _place(plain, next((match.start() for match in found if match[1]), 0))


def _place(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1}, column {at - text.rfind(chr(10), 0, at)}"


def _root(text: str) -> _Span:
    plain = _plain(text)
    value = _parsed(plain)
    return _Span(_next(plain, 0), len(plain.rstrip(BLANKS)), value)


def _members(text: str, start: int) -> _Members:
    """Return the members of the object that begins at `start` of a well-formed text."""
    plain = _plain(text)
    values: dict[str, _Span] = {}
    decode = json.JSONDecoder().raw_decode
    first_at = at = _next(plain, start + 1)
    end = start + 1
    while plain[at] != "}":
        key, colon = decode(plain, at)
        value_at = _next(plain, _next(plain, colon) + 1)
        value, end = decode(plain, value_at)
        values[key] = _Span(value_at, end, value)
        at = _next(plain, end)
        if plain[at] == ",":
            at = _next(plain, at + 1)
    has_comma = "," in _COMMENT.sub(_blanked, text[end:at])
    return _Members(start, at + 1, values, first_at, has_comma)


def _next(plain: str, at: int) -> int:
    """Return where the next thing that is no blank stands."""
    match = _NOT_BLANK.search(plain, at)
    return len(plain) if match is None else match.start()


def _replace(text: str, old: _Span, value: Any) -> str:
    new = _render(value, _line_indent(text, old.start), _indent_unit(text))
    return text[: old.start] + new + text[old.end :]


def _insert(text: str, parent: _Members, key: str, value: Any) -> str:
    """Put a member that is not there yet behind the last one."""
    unit, outer = _indent_unit(text), _line_indent(text, parent.start)
    head, tail = text[: parent.end - 1], text[parent.end - 1 :]
    if not parent.values:
        inner = outer + unit
        new = f"{inner}{json.dumps(key)}: {_render(value, inner, unit)}"
        return f"{head.rstrip(BLANKS)}\n{new}\n{outer}{tail}"
    last = list(parent.values.values())[-1]
    if not parent.has_comma:
        head = f"{text[: last.end]},{text[last.end : parent.end - 1]}"
    closing = "," if parent.has_comma else ""
    kept = head.rstrip(BLANKS)
    is_inline = "\n" not in text[parent.start : parent.first_at]
    if is_inline and "\n" not in head[len(kept) :]:
        return f"{kept} {json.dumps(key)}: {json.dumps(value)}{closing}{head[len(kept) :]}{tail}"
    inner = outer + unit if is_inline else _line_indent(text, parent.first_at)
    new = f"{inner}{json.dumps(key)}: {_render(value, inner, unit)}{closing}"
    return f"{kept}\n{new}\n{outer}{tail}"


def nested(keys: tuple[str, ...], value: Any) -> Any:
    """Return `value` as the innermost of objects with one key each."""
    for key in reversed(keys):
        value = {key: value}
    return value


def _line_indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _indent_unit(text: str) -> str:
    """Return what the first member of the file is indented by."""
    root = _members(text, _root(text).start)
    if not root.values or "\n" not in text[root.start : root.first_at]:
        return DEFAULT_INDENT
    return _line_indent(text, root.first_at) or DEFAULT_INDENT


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
