"""Preprocessing tokens of CUDA C++ source, as the compilers' first three phases see them.

Lines are spliced at backslash-newline, comments are dropped, strings are whole tokens, and raw
strings keep their splices, so that no text can be code for a compiler and a comment or string for
the screen. Nothing is preprocessed: `source_screen.py` judges the tokens.
"""

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import Literal, cast

TokenKind = Literal["identifier", "number", "string", "char", "header", "punctuation"]

_SPLICE = re.compile(r"\\[ \t\v\f]*\r?\n")
_RAW_OPENING = re.compile(r'(?:u8|u|U|L)?R"(?P<delimiter>[^ ()\\\t\v\f\n]{0,16})\(')
_TOKEN = re.compile(
    r"""
    (?P<skip>[ \t\v\f\r]+ | //[^\n]*)
  | (?P<newline>\n)
  | (?P<string>(?:u8|u|U|L)?"(?:\\.|[^"\\\n])*")
  | (?P<char>(?:u8|u|U|L)?'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?[0-9](?:[eEpP][+-]|'[0-9A-Za-z_]|[0-9A-Za-z_.])*)
  | (?P<identifier>[^\W\d][\w$]*)
  | (?P<punctuation>%:%:|%:|\#\#|\?\?.|.)
    """,
    re.VERBOSE,
)
_QUOTE = re.compile(r"(?:u8|u|U|L)?(?P<quote>[\"'])")
_LITERAL_REST = {
    '"': re.compile(r'"(?:\\.|[^"\\\n])*'),
    "'": re.compile(r"'(?:\\.|[^'\\\n])*"),
}
_WITHOUT_LITERALS = re.compile(r"(?P<identifier>[^\W\d][\w$]*)|(?P<punctuation>.)")
_BLOCK_COMMENT = re.compile(r"/\*.*?(?:\*/|\Z)", re.DOTALL)
_HEADER_NAME = re.compile(r'<[^>\n]*>|"[^"\n]*"')
_HEADER_DIRECTIVES = frozenset({"include", "include_next", "import", "embed"})
_HASHES = frozenset({"#", "%:", "??="})


@dataclass(frozen=True)
class Token:
    """One preprocessing token."""

    kind: TokenKind
    text: str
    """Splices removed, except inside raw strings."""
    offset: int
    """Place of its first character in the source."""


@dataclass(frozen=True)
class LogicalLine:
    """The tokens between two newlines; a directive starts with a hash token."""

    tokens: tuple[Token, ...]

    @property
    def is_directive(self) -> bool:
        """Whether the preprocessor takes this line for itself."""
        return self.tokens[0].text in _HASHES and self.tokens[0].kind == "punctuation"


class _OpenQuotes:
    """Quotes without a partner on their line, which are single characters to the compilers.

    Behind such a quote no other of its kind on the line has a partner either: the first would have
    found it. So a line is searched once, however many quotes it has.
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._searched = {'"': -1, "'": -1}

    def begins_nothing(self, position: int) -> bool:
        """Whether a quote at `position`, with or without a prefix, opens no literal."""
        match = _QUOTE.match(self._text, position)
        if match is None:
            return False
        quote, start = match["quote"], match.start("quote")
        if start < self._searched[quote]:
            return True
        rest = _LITERAL_REST[quote].match(self._text, start)
        assert rest is not None  # it begins with this quote
        if self._text.startswith(quote, rest.end()):
            return False
        self._searched[quote] = rest.end()
        return True


def logical_lines(source: str) -> list[LogicalLine]:
    """Return every logical line that has tokens."""
    text, origins = _spliced(source)
    lines: list[LogicalLine] = []
    tokens: list[Token] = []
    open_quotes = _OpenQuotes(text)
    token: Token | None
    position = 0
    while position < len(text):
        if open_quotes.begins_nothing(position):
            match = _WITHOUT_LITERALS.match(text, position)
            assert match is not None  # a quote, or the letters before one
            kind = cast(TokenKind, match.lastgroup)
            token, end = Token(kind, match[0], origins[position]), match.end()
        else:
            token, end = _next_token(source, text, origins, (position, tokens))
        if token is not None:
            tokens.append(token)
        elif text[position] == "\n" and tokens:
            lines.append(LogicalLine(tuple(tokens)))
            tokens = []
        position = end
    if tokens:
        lines.append(LogicalLine(tuple(tokens)))
    return lines


def _spliced(source: str) -> tuple[str, list[int]]:
    """Return the text without splices, and for each character its offset in the source."""
    parts: list[str] = []
    origins: list[int] = []
    start = 0
    for match in _SPLICE.finditer(source):
        parts.append(source[start : match.start()])
        origins.extend(range(start, match.start()))
        start = match.end()
    parts.append(source[start:])
    origins.extend(range(start, len(source)))
    return "".join(parts), origins


def _next_token(
    source: str, text: str, origins: list[int], state: tuple[int, list[Token]]
) -> tuple[Token | None, int]:
    """Return the token at a position, None for blanks and newlines, and where it ends."""
    position, before = state
    if _expects_header_name(before) and (match := _HEADER_NAME.match(text, position)):
        return Token("header", match[0], origins[position]), match.end()
    if match := _RAW_OPENING.match(text, position):
        return _raw_string(source, origins, position, match)
    if match := _BLOCK_COMMENT.match(text, position):
        return None, match.end()
    match = _TOKEN.match(text, position)
    assert match is not None  # the last alternative takes any character but a newline
    kind = match.lastgroup
    if kind in ("skip", "newline"):
        return None, match.end()
    return Token(cast(TokenKind, kind), match[0], origins[position]), match.end()


def _expects_header_name(tokens: list[Token]) -> bool:
    return len(tokens) == 2 and tokens[0].text in _HASHES and tokens[1].text in _HEADER_DIRECTIVES


def _raw_string(
    source: str, origins: list[int], position: int, opening: re.Match[str]
) -> tuple[Token, int]:
    """Return a raw string, whose end is sought in the source itself: splices are undone in it."""
    start = origins[position]
    body = origins[opening.end() - 1] + 1
    closing = f'){opening["delimiter"]}"'
    found = source.find(closing, body)
    end = len(source) if found < 0 else found + len(closing)
    return Token("string", source[start:end], start), bisect_left(origins, end)
