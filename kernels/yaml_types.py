"""What fields of records from YAML may hold: expressions, names of a scope, forms, ranges.

A scope is the context of validation, an object whose attributes are sets of names. Without one a
record was not read from a file, and its names are taken as they are.
"""

import re
from collections.abc import Collection
from typing import Annotated, Any, cast

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from kopt.config.near_matches import near_matches

from .expressions import ExpressionError, check_expression, split_expressions
from .record import Record

UNQUOTED = "inside { } a text with commas needs quotes"
"""What to do about a key without a value: `{int32: ceil_div(H, 2)}` is the key `2)`."""


class Mistake(ValueError):
    """What is wrong with a value: `at` leads from the value to the part that is meant."""

    def __init__(
        self, message: str, hint: str | None = None, at: tuple[int | str, ...] = ()
    ) -> None:
        """Keep the hint and the place beside the message."""
        super().__init__(message)
        self.hint = hint
        self.at = at


class Unlike(Mistake):
    """A value of another kind; the message is what was expected."""


class Entry(dict[str, Any]):
    """A mapping of the file with its line."""

    line: int


class YamlPlaced(Record):
    """A record that knows its line in the file."""

    line: int | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_line(cls, data: object) -> object:
        if not isinstance(data, Entry):
            return data
        if "line" in data:
            raise Mistake("unknown key 'line'")
        return {**data, "line": data.line}


def checked_expression(text: str, names: frozenset[str], *, predicate: bool = False) -> str:
    """Return an expression or predicate over `names` as it is shown and put into exports.

    Raises:
        Mistake: It is none.
    """
    try:
        check_expression(text, names, predicate=predicate)
    except ExpressionError as error:
        place = f"in {text[:80]!r}, character {error.position + 1}"
        raise Mistake(f"{error} ({place})") from error
    return " ".join(text.split())


def expressions(names: str, most: int) -> BeforeValidator:
    """Mark 1 to `most` expressions over a set of the scope: an integer, or a text with commas."""

    def read(value: object, info: ValidationInfo) -> object:
        return value if info.context is None else _expressions(value, info.context, names, most)

    return BeforeValidator(read)


def expression(names: str) -> BeforeValidator:
    """Mark one expression over a set of the scope."""

    def read(value: object, info: ValidationInfo) -> object:
        return value if info.context is None else _expressions(value, info.context, names, 1)[0]

    return BeforeValidator(read)


def _expressions(value: object, scope: object, names: str, most: int) -> tuple[str, ...]:
    if isinstance(value, bool) or not isinstance(value, str | int):
        hint = "write them in one text: B, 2" if isinstance(value, list) else None
        raise Unlike(f"1 to {most} expressions", hint)
    parts = split_expressions(str(value))
    if len(parts) > most:
        shown = f"{len(parts)} expressions, at most {most} are allowed"
        raise Mistake(f"{shown}: {str(value)[:80]!r}")
    return tuple(checked_expression(part, getattr(scope, names)) for part in parts)


def condition(names: str) -> BeforeValidator:
    """Mark a predicate over a set of the scope."""

    def read(value: object, info: ValidationInfo) -> object:
        if info.context is None:
            return value
        if not isinstance(value, str | bool):
            raise Unlike("a condition")
        text = str(value).lower() if isinstance(value, bool) else value
        return checked_expression(text, getattr(info.context, names), predicate=True)

    return BeforeValidator(read)


def known(names: str | Collection[str], what: str) -> AfterValidator:
    """Mark one of these names, or one in a set of the scope."""

    def check(name: str, info: ValidationInfo) -> str:
        options = names
        if isinstance(names, str):
            options = [name] if info.context is None else getattr(info.context, names)
        if name not in options:
            raise Mistake(f"unknown {what} {name[:80]!r}; {near_matches(name, options)}")
        return name

    return AfterValidator(check)


def form(pattern: str) -> AfterValidator:
    """Mark a text that has a form as a whole."""

    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise Mistake(f"{text[:80]!r} does not have the form {pattern}")
        return text

    return AfterValidator(check)


def integer(least: int, most: int) -> BeforeValidator:
    """Mark an integer within bounds, both included."""

    def check(value: object) -> object:
        if type(value) is int and least <= value <= most:
            return value
        raise Unlike(f"an integer {least} to {most}")

    return BeforeValidator(check)


def distinct(what: str) -> AfterValidator:
    """Mark a list of which no item stands twice."""

    def check(values: tuple[object, ...]) -> tuple[object, ...]:
        for place, value in enumerate(values):
            if value in values[:place]:
                raise Mistake(f"the {what} {value!r} stands twice", at=(place,))
        return values

    return AfterValidator(check)


def _text(value: object, info: ValidationInfo) -> object:
    is_text = isinstance(value, str) and value.strip()
    if info.context is not None and not is_text:
        raise Unlike("text")
    return value


def _named(value: object, info: ValidationInfo) -> object:
    """Return the entries of a mapping as a list, each with its key as `name`."""
    if info.context is None:
        return value
    if not isinstance(value, dict):
        raise Unlike("a mapping")
    entries: list[object] = []
    for place, (name, entry) in enumerate(cast(dict[str, object], value).items()):
        if isinstance(entry, Entry):
            if "name" in entry:
                raise Mistake("unknown key 'name': it stands before the colon", at=(place,))
            entry["name"] = name
        entries.append(entry)
    return entries


def _digits(value: object) -> object:
    return str(value) if type(value) is int else value


TEXT = BeforeValidator(_text)
"""Marks a text that is not empty."""
Text = Annotated[str, TEXT]
Flag = Annotated[bool, Field(strict=True)]
NAMED = BeforeValidator(_named)
"""Marks a list that stands as a mapping by name."""
DIGITS = BeforeValidator(_digits)
"""Marks a choice some of whose texts are digits."""
