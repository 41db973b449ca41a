"""The base of every record that crosses a process, the wire or the disk, and the diagnostic."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, SerializerFunctionWrapHandler, model_serializer


class Record(BaseModel):
    """Frozen, closed to unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SparseRecord(Record):
    """A record whose text leaves out some fields where they have their defaults.

    A field that comes later so leaves the texts of records as they were that do not use it, and
    digests of these.
    """

    left_out: ClassVar[dict[str, object]] = {}
    """The fields, each with its default."""

    @model_serializer(mode="wrap")
    def _without_defaults(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        written: dict[str, Any] = write(self)
        for name, default in self.left_out.items():
            if name in written and getattr(self, name) == default:
                del written[name]
        return written


class ToldRecord(Record):
    """A record that a model fills in: the string under a field becomes its schema text.

    Not of all records: pydantic parses the source of each such class at every start of a process.
    """

    model_config = ConfigDict(use_attribute_docstrings=True)


class Diagnostic(Record):
    """One thing that a stage found in a candidate, made to be read by the candidate's author."""

    severity: Literal["error", "warning", "note"] = "error"
    message: str
    """One sentence: what is wrong, with the value seen and the value expected."""
    line: int | None = None
    """1-based line of the candidate's own file."""
    column: int | None = None
    """1-based column of that line."""
    file: str | None = None
    """Set only when the place is not in the candidate's own file, e.g. a kopt header."""
    excerpt: str | None = None
    """The source line and a caret line below it."""
    hint: str | None = None
    """What to do about it."""


class Findings:
    """Diagnostics in the order found."""

    def __init__(self) -> None:
        """Start without any."""
        self.diagnostics: list[Diagnostic] = []

    def error(self, message: str, line: int | None, hint: str | None = None) -> None:
        """Add one error."""
        self.diagnostics.append(Diagnostic(message=message, line=line, hint=hint))


def because(diagnostics: Sequence[Diagnostic]) -> str:
    """Return what follows a sentence on a failure: a colon and the first message, if any."""
    return f": {diagnostics[0].message}" if diagnostics else ""


MAX_WIDTH = 120


def source_excerpt(source: str, line: int, column: int | None = None) -> str | None:
    """Return line `line` of `source`, and below it a caret at `column` if there is one.

    A long line is cut to the part around the column. None if `source` has no such line.

    Args:
        source: The whole text.
        line: 1-based.
        column: 1-based, in characters.
    """
    lines = source.split("\n")
    if not 1 <= line <= len(lines):
        return None
    text = lines[line - 1].rstrip("\r").replace("\t", " ")
    # What a terminal obeys instead of showing it must not come from a source.
    text = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
    start = 0
    if len(text) > MAX_WIDTH:
        start = max(0, min((column or 1) - MAX_WIDTH // 2, len(text) - MAX_WIDTH))
        text = text[start : start + MAX_WIDTH]
    if column is None:
        return text
    return f"{text}\n{' ' * (column - 1 - start)}^"
