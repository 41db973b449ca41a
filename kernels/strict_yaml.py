"""A strict subset of YAML 1.2 as a tree that knows the line of every key and value.

Refused: duplicate keys, anchors, aliases, tags, directives, several documents, keys that are not
plain text, and depth or size beyond the limits. Plain scalars are `null` and the empty value,
`true` and `false`, decimal integers without leading zeros or underscores, decimal fractions; all
else, `yes` and `0x10` included, is text. PyYAML reads the tokens; nothing is constructed by it.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, cast

import yaml

from kopt.config.yaml_mistakes import yaml_problem

MAX_BYTES = 1 << 20
MAX_DEPTH = 12

_INTEGER = re.compile(r"-?(0|[1-9][0-9]{0,18})")
_FRACTION = re.compile(r"-?[0-9]+(\.[0-9]*)?([eE][-+]?[0-9]{1,3})?")
_UNPRINTABLE = re.compile(
    r"[^\t\n\r\x20-\x7e\xa0-\u2027\u202f-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]|\r(?!\n)"
)
# What libyaml accepts and PyYAML's own parser refuses (tabs, a comment right behind `|`), or where
# the two give an empty value another line: explicit keys, marked documents.
_READ_OTHERWISE = re.compile(r"[\t?]|^---|[|>][^\n]*#", re.MULTILINE)
_CONSTANTS: dict[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "true": True,
    "false": False,
}


class YamlError(ValueError):
    """A text outside the subset; `line` counts from `first_line`."""

    def __init__(self, message: str, line: int) -> None:
        """Keep the line beside the message."""
        super().__init__(message)
        self.line = line


@dataclass(frozen=True)
class Scalar:
    """One value; `text` is what stands in the file, quotes removed."""

    value: str | int | float | bool | None
    text: str
    line: int


@dataclass(frozen=True)
class Sequence:
    """A list."""

    items: "tuple[Node, ...]"
    line: int


@dataclass(frozen=True)
class Mapping:
    """Keys in file order, each with the line of the key."""

    entries: "dict[str, Node]"
    key_lines: dict[str, int]
    line: int


Node = Scalar | Sequence | Mapping


def load_yaml(text: str, first_line: int = 1, max_bytes: int = MAX_BYTES) -> Node:
    """Return the tree of the one document in `text`, whose first line is `first_line` of its file.

    Raises:
        YamlError: The text is not YAML or outside the subset.
    """
    if len(text.encode(errors="surrogatepass")) > max_bytes:
        raise YamlError(f"more than {max_bytes} bytes of YAML", first_line)
    if found := _UNPRINTABLE.search(text):
        line = first_line + text.count("\n", 0, found.start())
        raise YamlError(f"the character U+{ord(found[0]):04X} is not allowed", line)
    libyaml = getattr(yaml, "CSafeLoader", None)  # takes a sixteenth of the time
    if libyaml is not None and not _READ_OTHERWISE.search(text):
        # A text is refused in the words of one parser, whether or not there is the other.
        with suppress(YamlError, yaml.YAMLError):
            return _Reader(first_line).document(_events(text, libyaml))
    try:
        return _Reader(first_line).document(_events(text, yaml.SafeLoader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = first_line + (mark.line if mark else 0)
        raise YamlError(yaml_problem(error), line) from error


def _events(text: str, loader: Any) -> Iterator[yaml.Event]:
    parse = cast(Callable[..., Iterator[yaml.Event]], yaml.parse)  # pyright: ignore[reportUnknownMemberType]  # the stub has no return type
    return parse(text, Loader=loader)


class _Reader:
    """Builds the tree from PyYAML's events, which the parser makes without recursion."""

    def __init__(self, first_line: int) -> None:
        self._first_line = first_line

    def document(self, events: Iterator[yaml.Event]) -> Node:
        next(events)  # the stream's start
        start = next(events)
        if not isinstance(start, yaml.DocumentStartEvent):
            raise YamlError("the document is empty", self._first_line)
        if start.version or start.tags:
            raise YamlError("YAML directives are not allowed", self._line(start))
        root = self._node(next(events), events, 1)
        next(events)  # the document's end
        after = next(events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise YamlError("a second YAML document is not allowed", self._line(after))
        return root

    def _line(self, event: yaml.Event) -> int:
        mark = event.start_mark
        return self._first_line + (mark.line if mark else 0)

    def _node(self, event: yaml.Event, events: Iterator[yaml.Event], depth: int) -> Node:
        line = self._line(event)
        if isinstance(event, yaml.AliasEvent):
            raise YamlError(f"aliases are not allowed: *{event.anchor}", line)
        assert isinstance(event, yaml.NodeEvent)
        if event.anchor is not None:
            raise YamlError(f"anchors are not allowed: &{event.anchor}", line)
        if depth > MAX_DEPTH:
            raise YamlError(f"nested deeper than {MAX_DEPTH} levels", line)
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise YamlError(f"tags are not allowed: {tag}", line)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(line, events, depth)
        if isinstance(event, yaml.MappingStartEvent):
            return self._mapping(line, events, depth)
        assert isinstance(event, yaml.ScalarEvent)
        return self._scalar(event)

    def _sequence(self, line: int, events: Iterator[yaml.Event], depth: int) -> Sequence:
        items: list[Node] = []
        while not isinstance(event := next(events), yaml.SequenceEndEvent):
            items.append(self._node(event, events, depth + 1))
        return Sequence(tuple(items), line)

    def _mapping(self, line: int, events: Iterator[yaml.Event], depth: int) -> Mapping:
        entries: dict[str, Node] = {}
        key_lines: dict[str, int] = {}
        while not isinstance(event := next(events), yaml.MappingEndEvent):
            key = self._node(event, events, depth + 1)
            if not isinstance(key, Scalar) or not isinstance(key.value, str):
                shown = repr(key.text) if isinstance(key, Scalar) else "a list or mapping"
                message = f"a key must be text, got {shown}"
                raise YamlError(f"{message}; inside {{ }} quote a text with commas", key.line)
            if key.value in entries:
                first = key_lines[key.value]
                raise YamlError(f"the key {key.value!r} stands here and in line {first}", key.line)
            key_lines[key.value] = key.line
            entries[key.value] = self._node(next(events), events, depth + 1)
        return Mapping(entries, key_lines, line)

    def _scalar(self, event: yaml.ScalarEvent) -> Scalar:
        text = str(event.value)
        line = self._line(event)
        if not event.implicit[0]:  # quoted or a block: always text
            return Scalar(text, text, line)
        if text in _CONSTANTS:
            return Scalar(_CONSTANTS[text], text, line)
        if _INTEGER.fullmatch(text):
            return Scalar(int(text), text, line)
        if _FRACTION.fullmatch(text) and ("." in text or "e" in text.lower()):
            return Scalar(float(text), text, line)
        return Scalar(text, text, line)
