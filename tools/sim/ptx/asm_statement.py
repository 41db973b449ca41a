"""The `asm` statements of a source: where each stands, its text, its operands.

A statement that is written in another way than kernels do (names for operands, text that a macro
makes) is not among them: it stays as it is, and the simulator refuses it by name.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kopt.kernels.source_lexer import LogicalLine, Token, logical_lines

_WORDS = frozenset({"asm", "__asm", "__asm__"})
_QUALIFIERS = frozenset({"volatile", "__volatile__", "__volatile"})
_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\", "\\r": "\r"}
_ESCAPE = re.compile(r"\\.")
_CONSTRAINT = re.compile(r'"([=+]?)([rlfdhn])"')
_OPENING, _CLOSING = "([{", ")]}"


@dataclass(frozen=True)
class AsmOperand:
    """An operand of a statement: `"+r"(value)`."""

    kind: str
    """r, l, f, d, h or n."""
    is_read: bool
    is_written: bool
    expression: str
    """As the source has it, without its parentheses."""


@dataclass(frozen=True)
class AsmStatement:
    """One statement, up to its closing parenthesis."""

    start: int
    """Offset of its first character in the source."""
    end: int
    """Offset behind its last one."""
    text: str
    """The PTX, with its escapes resolved and its parts joined."""
    operands: tuple[AsmOperand, ...]
    """%0, %1, ...: the outputs, then the inputs."""


def asm_statements(source: str) -> Iterator[AsmStatement]:
    """Yield the statements of `source` that can be read, in their order.

    None of a source that gives one of the words another meaning.
    """
    lines = logical_lines(source)
    if any(_defines_a_word(line) for line in lines):
        return
    for tokens in _stretches(lines):
        for place, token in enumerate(tokens):
            if token.text in _WORDS:
                found = _statement(source, tokens, place)
                if found is not None:
                    yield found


def _defines_a_word(line: LogicalLine) -> bool:
    words = [token.text for token in line.tokens[1:3]]
    return line.is_directive and words[:1] == ["define"] and words[-1] in _WORDS | _QUALIFIERS


def _stretches(lines: Sequence[LogicalLine]) -> Iterator[list[Token]]:
    """Yield the tokens between directives, and those of each directive."""
    between: list[Token] = []
    for line in lines:
        if line.is_directive:
            yield between
            yield list(line.tokens)
            between = []
        else:
            between += line.tokens
    yield between


def _statement(source: str, tokens: Sequence[Token], place: int) -> AsmStatement | None:
    first = place + 1
    while first < len(tokens) and tokens[first].text in _QUALIFIERS:
        first += 1
    if first >= len(tokens) or tokens[first].text != "(":
        return None
    last = _closing(tokens, first)
    if last is None:
        return None
    parts = _split(tokens[first + 1 : last], ":")
    if len(parts) > 4 or not parts[0] or any(one.kind != "string" for one in parts[0]):
        return None
    texts = [_resolved(one.text) for one in parts[0]]
    outputs, inputs = (_operands(source, part) for part in [*parts[1:3], [], []][:2])
    if None in texts or outputs is None or inputs is None:
        return None
    if any(not one.is_written for one in outputs) or any(one.is_written for one in inputs):
        return None
    end = tokens[last].offset + 1
    text = "".join(text or "" for text in texts)
    return AsmStatement(tokens[place].offset, end, text, (*outputs, *inputs))


def _closing(tokens: Sequence[Token], opening: int) -> int | None:
    depth = 0
    for place in range(opening, len(tokens)):
        if tokens[place].kind == "punctuation":
            depth += (tokens[place].text in _OPENING) - (tokens[place].text in _CLOSING)
            if depth == 0:
                return place
    return None


def _split(tokens: Sequence[Token], mark: str) -> list[list[Token]]:
    """Return the parts between marks outside of brackets; `::` of a name is none."""
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        is_punctuation = token.kind == "punctuation"
        depth += is_punctuation and token.text in _OPENING
        depth -= is_punctuation and token.text in _CLOSING
        if is_punctuation and token.text == mark and depth == 0:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def _operands(source: str, tokens: Sequence[Token]) -> tuple[AsmOperand, ...] | None:
    if not tokens:
        return ()
    found: list[AsmOperand] = []
    for part in _split(tokens, ","):
        named = _CONSTRAINT.fullmatch(part[0].text) if part else None
        if named is None or len(part) < 4 or part[1].text != "(":
            return None
        if _closing(part, 1) != len(part) - 1:
            return None
        expression = source[part[1].offset + 1 : part[-1].offset]
        if "//" in expression or "/*" in expression:
            return None
        is_written = named[1] != ""
        found.append(AsmOperand(named[2], named[1] != "=", is_written, _one_line(expression)))
    return tuple(found)


def _one_line(text: str) -> str:
    return " ".join(text.replace("\\\n", " ").split())


def _resolved(literal: str) -> str | None:
    """Return the text of a plain string literal; None for one with other escapes or a prefix."""
    if not literal.startswith('"'):
        return None
    unknown = [one for one in _ESCAPE.findall(literal[1:-1]) if one not in _ESCAPES]
    if unknown:
        return None
    return _ESCAPE.sub(lambda match: _ESCAPES[match[0]], literal[1:-1])
