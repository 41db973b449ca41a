"""What a parser finds in a file, and the lines of a file as the chunker sees them.

A unit is one function, type or group of declarations by its lines. It holds no text: `SourceLines`
does. Parsers make units, `gaps.py` adds what they missed, `sizes.py` cuts and joins.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from kopt.tools.docs.records import Kind

LONGEST_SIGNATURE = 1500

_C_IDLE = re.compile(
    r"\s*(?:$|#|[{}()\[\];,\s]+(?://.*)?$|using\b[^=]*;?\s*$"
    r"|(?:template\s*<[^{}]*>\s*)?(?:struct|class|enum|union)\s+[\w:]+\s*;\s*$"
    r"|(?:public|private|protected)\s*:\s*$|namespace\b|extern\s+\"C\"\s*\{?\s*$)"
)
_PYTHON_IDLE = re.compile(r"\s*(?:$|#|[{}()\[\];,\s]+$|import\b|from\s+[\w.]+\s+import\b)")
_COMMENT_MARK = re.compile(r"//|/\*|\*/")
_MARK_OR_STRING = re.compile(rf"{_COMMENT_MARK.pattern}|\"(?:\\.|[^\"\\])*+(?P<closing>\"?)")
"""A string without an end is matched too: trying again at each escaped quote is quadratic."""
_RULE = re.compile(r"[\W_]*$")
_LEGAL = re.compile(r"copyright|spdx-license|licensed under|redistribution and use", re.IGNORECASE)


@dataclass(frozen=True)
class Unit:
    """One thing of a file that becomes a chunk; lines are 1-based and include its comment."""

    kind: Kind
    symbol: str | None
    start_line: int
    end_line: int
    scope: tuple[str, ...] = ()
    """Namespaces and classes around it, outermost first."""
    comment: str = ""
    """The comment above it, without comment marks."""
    signature: str = ""
    """Up to its body, on one line."""
    folded: tuple[tuple[int, int], ...] = ()
    """(first, last) lines inside it that are units of their own: its body leaves them out."""

    @property
    def lines(self) -> int:
        """Return how many lines it spans."""
        return self.end_line - self.start_line + 1


@dataclass(frozen=True)
class SourceLines:
    """A text by lines; numbers are 1-based as in units."""

    text: str
    is_python: bool

    @cached_property
    def lines(self) -> list[str]:
        """Return the lines without their ends."""
        return self.text.split("\n")

    @cached_property
    def is_code(self) -> list[bool]:
        """Return of each line whether it says something that can be looked for.

        Blank lines, comments, directives, lone brackets, imports, `using` and forward declarations
        do not.
        """
        idle = _PYTHON_IDLE if self.is_python else _C_IDLE
        if self.is_python:
            return [idle.match(line) is None for line in self.lines]
        return [
            not is_comment and idle.match(line) is None
            for line, is_comment in zip(self.lines, self._is_comment, strict=True)
        ]

    def code_lines(self, first: int, last: int) -> int:
        """Return the number of code lines from `first` to `last`."""
        return sum(self.is_code[first - 1 : last])

    def comment_start(self, first: int) -> int:
        """Return the first line of the comment above line `first`; `first` without one.

        One blank line may stand between, but not a line that also holds code.
        """
        above = first - 1
        if above > 1 and not self.lines[above - 1].strip():
            above -= 1
        start = first
        while above > 0 and self._is_comment[above - 1]:
            start = above
            above -= 1
        return start

    @cached_property
    def _is_comment(self) -> list[bool]:
        found: list[bool] = []
        in_block = False
        for line in self.lines:
            stripped = line.strip()
            begins = in_block or stripped.startswith(("//", "/*"))
            if "/*" in line or "*/" in line:
                in_block = _ends_in_block(line, in_block)
            whole = in_block or "*/" not in line or stripped.endswith("*/")
            found.append(bool(stripped) and begins and whole)
        return found


def _ends_in_block(line: str, in_block: bool) -> bool:
    """Say whether a block comment is open at the end of `line`."""
    for mark in _comment_marks(line):
        if mark == "*/":
            in_block = False
        elif mark == "//" and not in_block:
            return False
        elif mark == "/*":
            in_block = True
    return in_block


def _comment_marks(line: str) -> Iterator[str]:
    """Yield the marks outside of strings; a lone quote, as in prose, begins none."""
    for match in _MARK_OR_STRING.finditer(line):
        if match["closing"] is None:
            yield match[0]
        elif not match["closing"]:
            yield from _COMMENT_MARK.findall(match[0])


def one_line(text: str) -> str:
    """Return a signature with its whitespace collapsed, cut at LONGEST_SIGNATURE characters."""
    return " ".join(text[: 2 * LONGEST_SIGNATURE].split())[:LONGEST_SIGNATURE]


def plain_comment(lines: Iterable[str]) -> str:
    """Return the words of comment lines without their marks, rules and legal notices."""
    words: list[str] = []
    for line in lines:
        stripped = line.strip().strip("/*!").strip()
        if stripped and not _RULE.match(stripped):
            words.append(re.sub(r"[\\@](?:brief|file|param|return|tparam)\b", "", stripped).strip())
    text = " ".join(word for word in words if word)
    return "" if _LEGAL.search(text[:600]) else text


CPP_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
"""One without an end reaches to that of the text."""
CPP_IDLE = re.compile(rf"{CPP_COMMENT.pattern}|\s+", re.DOTALL)
"""Comments and whitespace of C++."""
