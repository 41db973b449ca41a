"""JSON with comments and trailing commas, read into nodes that know their place in the text.

That place is what lets an edit leave every other character alone. It is no general parser: a key
that stands twice in one object is refused, because clients disagree on which one counts.
"""

import json
import re
from dataclasses import dataclass
from typing import Any, TypeGuard

MAX_DEPTH = 100  # deeper than any settings file; keeps the recursion below Python's own limit
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")
_BLANK = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)


class MalformedText(ValueError):
    """The text is not what its format allows; the message has the line. Stays in this folder."""


class UnsafeEdit(ValueError):
    """An edit would not do what it is meant to. Stays in this folder."""


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Return whether `value` is what a JSON object is read as."""
    return isinstance(value, dict)


@dataclass(frozen=True)
class Member:
    """One key of an object and its value."""

    key: str
    start: int
    """Where the key's opening quote stands."""
    node: "JsonNode"


@dataclass(frozen=True)
class JsonNode:
    """One value: `text[start:end]`."""

    start: int
    end: int
    value: Any
    members: tuple[Member, ...] = ()
    """Of an object, in the order of the text."""
    comma_at: int | None = None
    """Of an object with a comma after its last member: where that comma stands."""

    def member(self, key: str) -> Member | None:
        """Return the member called `key`, or None."""
        return next((member for member in self.members if member.key == key), None)


def read_tree(text: str, *, comments: bool = True) -> JsonNode:
    """Return the tree of `text`; without `comments` also trailing commas are refused.

    Raises:
        MalformedText: It is not JSON; the message says where.
    """
    reader = _Reader(text, comments)
    reader.skip()
    tree = reader.value(0)
    reader.skip()
    if reader.at != len(text):
        raise reader.error("expected the end of the file")
    return tree


class _Reader:
    """A place in the text that moves on; one method for each kind of value."""

    def __init__(self, text: str, comments: bool) -> None:
        self.text, self.comments = text, comments
        self.at = 1 if text.startswith("\ufeff") else 0  # a byte order mark is no part of JSON

    def error(self, expected: str) -> MalformedText:
        line = self.text.count("\n", 0, self.at) + 1
        column = self.at - (self.text.rfind("\n", 0, self.at) + 1) + 1
        seen = repr(self.text[self.at]) if self.at < len(self.text) else "the end of the file"
        return MalformedText(f"line {line}, column {column}: {expected}, found {seen}")

    def skip(self) -> None:
        """Move over blanks and comments."""
        while True:
            self.at = _matched_end(_BLANK, self.text, self.at)
            comment = _COMMENT.match(self.text, self.at)
            if comment is None:
                return
            if not self.comments:
                raise self.error("this client allows no comments: expected a value or a mark")
            self.at = comment.end()

    def sees(self, mark: str) -> bool:
        return self.text.startswith(mark, self.at)

    def value(self, depth: int) -> JsonNode:
        if depth > MAX_DEPTH:
            raise self.error(f"more than {MAX_DEPTH} levels")
        if self.sees("{"):
            return self.object(depth)
        if self.sees("["):
            return self.array(depth)
        start = self.at
        token = (_STRING if self.sees('"') else _SCALAR).match(self.text, self.at)
        if token is None:
            raise self.error("expected a value")
        try:
            value = json.loads(token.group())
        except ValueError as error:
            raise self.error(f"a string with a wrong escape ({error})") from error
        self.at = token.end()
        return JsonNode(start, self.at, value)

    def object(self, depth: int) -> JsonNode:
        start, members = self.at, list[Member]()
        self.take("{")
        comma_at: int | None = None
        while self.goes_on("}", comma_at, first=not members):
            key_at = self.at
            if not self.sees('"'):
                raise self.error("expected a key in double quotes")
            key = str(self.value(depth).value)
            if any(member.key == key for member in members):
                raise self.error(f"the key {key!r} stands twice in one object")
            self.skip()
            self.take(":")
            self.skip()
            members.append(Member(key, key_at, self.value(depth + 1)))
            comma_at = self.comma()
        found = {member.key: member.node.value for member in members}
        return JsonNode(start, self.at, found, tuple(members), comma_at)

    def array(self, depth: int) -> JsonNode:
        start, values = self.at, list[Any]()
        self.take("[")
        comma_at: int | None = None
        while self.goes_on("]", comma_at, first=not values):
            values.append(self.value(depth + 1).value)
            comma_at = self.comma()
        return JsonNode(start, self.at, values)

    def goes_on(self, closing: str, comma_at: int | None, *, first: bool) -> bool:
        """Return whether one more item follows; moves over the closing mark if none does."""
        self.skip()
        if not self.sees(closing):
            if not first and comma_at is None:
                raise self.error(f"expected ',' or {closing!r}")
            return True
        if comma_at is not None and not self.comments:
            raise self.error("this client allows no comma after the last item")
        self.at += 1
        return False

    def comma(self) -> int | None:
        """Move over a comma, if there is one, and return where it stands."""
        self.skip()
        if not self.sees(","):
            return None
        self.at += 1
        return self.at - 1

    def take(self, mark: str) -> None:
        if not self.sees(mark):
            raise self.error(f"expected {mark!r}")
        self.at += 1


def _matched_end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at
