"""Typed reading of one YAML mapping: every mistake becomes a diagnostic with its line.

A getter that finds a mistake reports it and returns its default, so that one pass over a file
finds all its mistakes. Whoever reads must look at `Findings.diagnostics` before using the values.
"""

import re
from collections.abc import Sequence
from typing import TypeVar

from kopt.config.near_matches import near_matches

from .expressions import ExpressionError, check_expression, split_expressions
from .record import Diagnostic, Record
from .strict_yaml import Mapping, Node, Scalar
from .strict_yaml import Sequence as YamlSequence

Choice = TypeVar("Choice", bound=str)

IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


class Findings:
    """Diagnostics in the order found."""

    def __init__(self) -> None:
        """Start without any."""
        self.diagnostics: list[Diagnostic] = []

    def error(self, message: str, line: int | None, hint: str | None = None) -> None:
        """Add one error."""
        self.diagnostics.append(Diagnostic(message=message, line=line, hint=hint))


def _place(text: str, error: ExpressionError) -> str:
    return f"in {text[:80]!r}, character {error.position + 1}"


def _one_line(text: str) -> str:
    """Return an expression as it is shown and put into exports, whatever separates its words."""
    return " ".join(text.split())


def keys_of(record: type[Record]) -> tuple[str, ...]:
    """Return the keys of an entry that is read as `record`: all fields but its name and line."""
    return tuple(name for name in record.model_fields if name not in ("name", "line"))


def described(node: Node) -> str:
    """Return the value of `node` as messages show it."""
    if isinstance(node, Mapping):
        return "a mapping"
    if isinstance(node, YamlSequence):
        return "a list"
    return "nothing" if node.value is None else repr(node.text[:80])


class Fields:
    """One mapping that is being read; `what` names it in messages."""

    def __init__(self, node: Node, what: str, keys: Sequence[str], findings: Findings) -> None:
        """Report every key outside `keys`; a node that is no mapping reads as an empty one."""
        self.what = what
        self.line = node.line
        self.findings = findings
        self._entries: dict[str, Node] = {}
        self._key_lines: dict[str, int] = {}
        self.is_mapping = isinstance(node, Mapping)
        if not isinstance(node, Mapping):
            allowed = ", ".join(keys)
            findings.error(
                f"{what}: expected a mapping of {allowed}; got {described(node)}", node.line
            )
            return
        self._key_lines = node.key_lines
        for key, value in node.entries.items():
            if key in keys:
                self._entries[key] = value
            else:
                self._unknown_key(key, keys, value)

    def _unknown_key(self, key: str, keys: Sequence[str], value: Node) -> None:
        hint = None
        if isinstance(value, Scalar) and value.value is None and value.text == "":
            hint = "inside { } a text with commas needs quotes"
        message = f"{self.what}: unknown key {key!r}; {near_matches(key, keys)}"
        self.findings.error(message, self._key_lines[key], hint)

    def __contains__(self, key: str) -> bool:
        """Whether the mapping has `key`."""
        return key in self._entries

    def line_of(self, key: str) -> int:
        """Return the line of `key`, or of the mapping without it."""
        return self._key_lines.get(key, self.line)

    def error(self, key: str, message: str, hint: str | None = None) -> None:
        """Report a mistake in the value of `key`."""
        self.findings.error(f"{self.what}: {key}: {message}", self.line_of(key), hint)

    def node(self, key: str) -> Node | None:
        """Return the raw value of `key`; None without it."""
        return self._entries.get(key)

    def require(self, *keys: str) -> None:
        """Report each of `keys` that is missing."""
        if self.is_mapping:
            for key in keys:
                if key not in self._entries:
                    self.findings.error(f"{self.what}: the key {key!r} is missing", self.line)

    def _scalar(self, key: str, wanted: str) -> Scalar | None:
        node = self._entries.get(key)
        if node is None or isinstance(node, Scalar):
            return node
        self.error(key, f"expected {wanted}, got {described(node)}")
        return None

    def text(self, key: str, default: str = "") -> str:
        """Return a text that is not empty."""
        scalar = self._scalar(key, "text")
        if scalar is None:
            return default
        if isinstance(scalar.value, str) and scalar.value.strip():
            return scalar.value
        self.error(key, f"expected text, got {described(scalar)}")
        return default

    def identifier(self, key: str) -> str:
        """Return a C identifier."""
        text = self.text(key)
        if text and not IDENTIFIER.fullmatch(text):
            self.error(key, f"{text[:80]!r} is no C identifier of at most 128 characters")
        return text

    def boolean(self, key: str, *, default: bool) -> bool:
        """Return true or false."""
        scalar = self._scalar(key, "true or false")
        if scalar is None:
            return default
        if isinstance(scalar.value, bool):
            return scalar.value
        self.error(key, f"expected true or false, got {described(scalar)}")
        return default

    def integer(self, key: str, least: int, most: int) -> int | None:
        """Return an integer from `least` to `most`; None without the key or after a mistake."""
        node = self._entries.get(key)
        if node is None:
            return None
        return integer_of(node, f"{self.what}: {key}", (least, most), self.findings)

    def choice(self, key: str, options: tuple[Choice, ...], default: Choice) -> Choice:
        """Return one of `options`, compared as text."""
        scalar = self._scalar(key, f"one of {', '.join(options)}")
        if scalar is None:
            return default
        for option in options:
            if scalar.text == option:
                return option
        self.error(key, f"expected one of {', '.join(options)}; got {described(scalar)}")
        return default

    def expressions(
        self, key: str, names: frozenset[str], most: int, default: tuple[str, ...] = ("1",)
    ) -> tuple[str, ...]:
        """Return 1 to `most` expressions over `names`: an integer, or one text with commas."""
        node = self._entries.get(key)
        if node is None:
            return default
        hint = "write them in one text: B, 2" if isinstance(node, YamlSequence) else None
        if not isinstance(node, Scalar) or isinstance(node.value, bool | float | None):
            self.error(key, f"expected 1 to {most} expressions, got {described(node)}", hint)
            return default
        parts = split_expressions(node.text)
        if len(parts) > most:
            self.error(
                key, f"{len(parts)} expressions, at most {most} are allowed: {node.text[:80]!r}"
            )
            return default
        for part in parts:
            try:
                check_expression(part, names)
            except ExpressionError as error:
                self.error(key, f"{error} ({_place(part, error)})")
                return default
        return tuple(_one_line(part) for part in parts)

    def expression(self, key: str, names: frozenset[str], default: str = "0") -> str:
        """Return one expression over `names`."""
        return self.expressions(key, names, 1, (default,))[0]

    def predicate(self, key: str, names: frozenset[str]) -> str:
        """Return a predicate over `names`; without the key "true"."""
        node = self._entries.get(key)
        if node is None:
            return "true"
        return predicate_of(node, f"{self.what}: {key}", names, self.findings)

    def items(self, key: str) -> tuple[Node, ...]:
        """Return the items of a list; without the key none."""
        node = self._entries.get(key)
        if node is None:
            return ()
        if isinstance(node, YamlSequence):
            return node.items
        self.error(key, f"expected a list, got {described(node)}", f"write {key}: [...]")
        return ()

    def entries(self, key: str) -> dict[str, tuple[Node, int]]:
        """Return the entries of a mapping with the line of each key; without the key none."""
        node = self._entries.get(key)
        if node is None:
            return {}
        if isinstance(node, Mapping):
            return {name: (value, node.key_lines[name]) for name, value in node.entries.items()}
        self.error(key, f"expected a mapping, got {described(node)}")
        return {}


def integer_of(node: Node, what: str, bounds: tuple[int, int], findings: Findings) -> int | None:
    """Return the integer of `node` within `bounds`, both included; None after a mistake."""
    least, most = bounds
    value = node.value if isinstance(node, Scalar) else None
    if isinstance(value, int) and not isinstance(value, bool) and least <= value <= most:
        return value
    findings.error(
        f"{what}: expected an integer {least} to {most}, got {described(node)}", node.line
    )
    return None


def text_of(node: Node, what: str, findings: Findings) -> str | None:
    """Return the text of `node`; None after a mistake."""
    if isinstance(node, Scalar) and isinstance(node.value, str):
        return node.value
    findings.error(f"{what}: expected text, got {described(node)}", node.line)
    return None


def predicate_of(node: Node, what: str, names: frozenset[str], findings: Findings) -> str:
    """Return the predicate in `node`; "true" after a mistake."""
    if not isinstance(node, Scalar) or not isinstance(node.value, str | bool):
        findings.error(f"{what}: expected a condition, got {described(node)}", node.line)
        return "true"
    try:
        check_expression(node.text, names, predicate=True)
    except ExpressionError as error:
        findings.error(f"{what}: {error} ({_place(node.text, error)})", node.line)
        return "true"
    return _one_line(node.text)
