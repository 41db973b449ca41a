"""The `asm` statements of a source: where each stands, its text, its operands.

A statement that is written in another way than kernels do (names for operands, text that a macro
makes) is not among them: it stays as it is, and the simulator refuses it by name.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from kopt.kernels.source_lexer import LogicalLine, Token, logical_lines

_WORDS = frozenset({"asm", "__asm", "__asm__"})
_QUALIFIERS = frozenset({"volatile", "__volatile__", "__volatile"})
_ESCAPES = {"\\n": "\n", "\\t": "\t", '\\"': '"', "\\\\": "\\", "\\r": "\r"}
_ESCAPE = re.compile(r"\\.")
_CONSTRAINT = re.compile(r'"([=+]?)([rlfdhn])"')
_OPENING, _CLOSING = "([{", ")]}"
_SPLICE = re.compile(r"\\[ \t\v\f]*\n")


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
    replaced: frozenset[str] = frozenset()
    """Names that the preprocessor may replace in it: macros, and parameters of its own macro."""


def asm_statements(source: str) -> Iterator[AsmStatement]:
    """Yield the statements of `source` that can be read, in their order.

    None of a source that gives one of the words another meaning.
    """
    lines = logical_lines(source)
    heads = [_macro_head(line) for line in lines if line.is_directive]
    if any(name in _WORDS | _QUALIFIERS for head in heads for name in head):
        return
    macros = frozenset(head[0] for head in heads if head)
    for tokens, parameters in _stretches(lines):
        partners, names, done = _partners(tokens), macros | parameters, 0
        for place, token in enumerate(tokens):
            first = _behind_words(tokens, place) if token.text in _WORDS else 0
            if place < done or first not in partners:
                continue
            done = partners[first]
            found = _statement(source, tokens[place], tokens[first : done + 1])
            if found is not None:
                yield replace(found, replaced=names)


def _macro_head(line: LogicalLine) -> list[str]:
    """Return the name that a line defines, then the parameters; nothing of another line."""
    words = [token.text for token in line.tokens[1:]]
    if words[:1] != ["define"]:
        return []
    is_listed = words[2:3] == ["("] and ")" in words
    return [*words[1:2], *(words[3 : words.index(")")] if is_listed else ())]


def _stretches(lines: Sequence[LogicalLine]) -> Iterator[tuple[list[Token], frozenset[str]]]:
    """Yield the tokens between directives, and those of each directive with its parameters."""
    between: list[Token] = []
    for line in lines:
        if line.is_directive:
            yield between, frozenset()
            yield list(line.tokens), frozenset(_macro_head(line)[1:])
            between = []
        else:
            between += line.tokens
    yield between, frozenset()


def _partners(tokens: Sequence[Token]) -> dict[int, int]:
    """Return where each bracket that is closed is closed."""
    partners: dict[int, int] = {}
    opened: list[int] = []
    for place, token in enumerate(tokens):
        if token.kind == "punctuation" and token.text in _OPENING:
            opened.append(place)
        elif token.kind == "punctuation" and token.text in _CLOSING and opened:
            partners[opened.pop()] = place
    return partners


def _behind_words(tokens: Sequence[Token], place: int) -> int:
    """Return the place behind `asm` and its qualifiers."""
    place += 1
    while place < len(tokens) and tokens[place].text in _QUALIFIERS:
        place += 1
    return place


def _statement(source: str, word: Token, tokens: Sequence[Token]) -> AsmStatement | None:
    """Return what begins with `word`, and has these tokens from bracket to bracket."""
    parts = _split(tokens[1:-1], ":")
    is_text = bool(parts[0]) and all(one.kind == "string" for one in parts[0])
    if tokens[0].text != "(" or len(parts) > 4 or not is_text:
        return None
    texts = [_resolved(one.text) for one in parts[0]]
    outputs, inputs = (_operands(source, part) for part in [*parts[1:3], [], []][:2])
    if None in texts or outputs is None or inputs is None:
        return None
    if any(not one.is_written for one in outputs) or any(one.is_written for one in inputs):
        return None
    text = "".join(text or "" for text in texts)
    return AsmStatement(word.offset, tokens[-1].offset + 1, text, (*outputs, *inputs))


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
        if _partners(part).get(1) != len(part) - 1 or not all(map(_is_plain, part[2:-1])):
            return None
        expression = _SPLICE.sub("", source[part[1].offset + 1 : part[-1].offset])
        if "//" in expression or "/*" in expression:
            return None
        is_written = named[1] != ""
        one_line = expression.replace("\n", " ")
        found.append(AsmOperand(named[2], named[1] != "=", is_written, one_line))
    return tuple(found)


def _is_plain(token: Token) -> bool:
    """Whether a token of an expression is the same on another line and inside of a block.

    A statement in an expression may leave a loop, and a string may hold ends of lines.
    """
    return token.kind != "string" and token.text not in (";", "__LINE__")


def _resolved(literal: str) -> str | None:
    """Return the text of a plain string literal; None for one with other escapes or a prefix."""
    if not literal.startswith('"'):
        return None
    unknown = [one for one in _ESCAPE.findall(literal[1:-1]) if one not in _ESCAPES]
    if unknown:
        return None
    return _ESCAPE.sub(lambda match: _ESCAPES[match[0]], literal[1:-1])
