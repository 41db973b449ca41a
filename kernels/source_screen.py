"""What a candidate's source may not contain, found before any compiler sees it.

The screen reads tokens (`source_lexer.py`), so a word in a comment or a string is no finding. It
refuses what reads the host's files, what tells the compilers or devices apart that must see the
same code, and the tricks that would hide either. It does not judge what the kernel computes.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from kopt.config.near_matches import close_names, did_you_mean

from .candidate import Candidate
from .header_parser import declared_macros
from .record import Diagnostic, source_excerpt
from .source_lexer import LogicalLine, Token, logical_lines
from .source_macros import Finding, macro_findings
from .source_names import (
    ATTRIBUTES,
    CONDITIONALS,
    CUDA_FOLDERS,
    CUDA_HEADERS,
    DIRECTIVES,
    PRAGMAS,
    STANDARD_HEADERS,
    forbidden_name,
    kopt_headers,
)

MAX_FINDINGS = 20
_NEAR_HEADER = 0.75
"""How alike a header must be to be offered: cuda_fp8.hh is, foo.h is not like float.h."""

_SAME_CODE = "the code that is checked is the code that ships"
_CHARACTERS = (
    (re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]|\r(?!\n)"), "a control character"),
    (re.compile(r"[\u200e\u200f\u202a-\u202e\u2066-\u2069]"), "a mark that turns the text"),
    (re.compile(r"\\[ \t\v\f]+\r?\n"), "a backslash with blanks behind it ends the line"),
    (re.compile(r"\?\?/"), "the trigraph ??/"),
)
_STRING = re.compile(r'^(?:u8|u|U|L)?(?:R"[^(]*\((?P<raw>.*)\)[^)]*"|"(?P<plain>.*)")$', re.DOTALL)
_ESCAPE = re.compile(r"\\(?:x(?P<hex>[0-9a-fA-F]+)|(?P<octal>[0-7]{1,3})|[\s\S])")
_FILE_DIRECTIVES = re.compile(r"\.\s*(incbin|include)\b")


def screen_source(candidate: Candidate) -> tuple[Diagnostic, ...]:
    """Return what is refused in `candidate`, in source order, at most 20 findings."""
    source = candidate.source
    found: dict[int, tuple[str, str | None]] = {}
    for offset, message, hint in _findings(source):
        found.setdefault(offset, (message, hint))
    return tuple(
        _diagnostic(source, place, *found[place]) for place in sorted(found)[:MAX_FINDINGS]
    )


def _diagnostic(source: str, offset: int, message: str, hint: str | None) -> Diagnostic:
    line = source.count("\n", 0, offset) + 1
    column = offset - source.rfind("\n", 0, offset)
    excerpt = source_excerpt(source, line, column)
    return Diagnostic(message=message, line=line, column=column, excerpt=excerpt, hint=hint)


def _findings(source: str) -> Iterator[Finding]:
    for form, what in _CHARACTERS:
        for match in form.finditer(source):
            yield match.start(), f"{what} is not allowed in a source", None
    lines = logical_lines(source)
    for line in lines:
        yield from _name_findings(line)
        if line.is_directive:
            yield from _directive_findings(line)
    tokens = [token for line in lines for token in line.tokens]
    yield from _string_findings(tokens)
    yield from macro_findings(lines, declared_macros(source))
    yield from declaration_findings(tokens)


def _name_findings(line: LogicalLine) -> Iterator[Finding]:
    for token in line.tokens:
        if token.kind == "identifier" and (what := forbidden_name(token.text)):
            yield token.offset, f"{token.text} is {what} and not allowed", _SAME_CODE
        elif token.kind == "punctuation" and token.text in ("%:", "%:%:", "??="):
            yield token.offset, f"write # instead of {token.text}", None


def _directive_findings(line: LogicalLine) -> Iterator[Finding]:
    hash_token = line.tokens[0]
    name = _directive(line)
    if name is None:
        if len(line.tokens) > 1:
            yield hash_token.offset, "a line marker is not allowed", _SAME_CODE
    elif name not in DIRECTIVES and name not in CONDITIONALS:
        yield hash_token.offset, f"the directive #{name} is not allowed", None
    elif name == "include":
        yield from _include_findings(line)
    elif name == "pragma":
        yield from _pragma_findings(line.tokens[0], " ".join(t.text for t in line.tokens[2:]))
    if any(token.kind == "string" and "\n" in token.text for token in line.tokens):
        yield hash_token.offset, "a raw string over several lines inside a directive", None


def _include_findings(line: LogicalLine) -> Iterator[Finding]:
    if len(line.tokens) != 3 or line.tokens[2].kind != "header":
        offset = line.tokens[-1].offset
        yield offset, "#include needs one header name: <name>, not a macro or more", None
        return
    token = line.tokens[2]
    name = token.text[1:-1]
    known_headers = STANDARD_HEADERS | CUDA_HEADERS | kopt_headers()
    if name in known_headers or CUDA_FOLDERS.fullmatch(name):
        return
    if name.startswith("/"):
        reason = f"the absolute include {token.text} is not allowed"
    elif ".." in name.split("/"):
        reason = f"the include {token.text} leaves its folder by .."
    elif name.startswith("kopt/"):
        known = ", ".join(sorted(kopt_headers()))
        reason = f"kopt has no header {token.text}; there are {known}"
    else:
        reason = f"the include {token.text} is not on the list of allowed headers"
    close = close_names(name, known_headers, most=2, likeness=_NEAR_HEADER)
    hint = did_you_mean([f"<{match}>" for match in close]) if close else None
    allowed = "allowed are <kopt/...>, CUDA's own headers and standard headers by name"
    if token.text.startswith('"') and not close:
        allowed = f"a candidate is one file: put what it needs into it; {allowed}"
    yield token.offset, reason, hint or allowed


def _pragma_findings(place: Token, text: str) -> Iterator[Finding]:
    if not PRAGMAS.match(text):
        message = f"#pragma {text[:60]} is not allowed"
        yield place.offset, message, "allowed are unroll, nounroll and nv_diag_*"


def _string_findings(tokens: list[Token]) -> Iterator[Finding]:
    for is_string, group in groupby(tokens, key=lambda token: token.kind == "string"):
        strings = list(group)
        if is_string and (
            found := _FILE_DIRECTIVES.search("".join(_content(t.text) for t in strings))
        ):
            message = f"an assembler .{found[1]} reads files of the host and is not allowed"
            yield strings[0].offset, message, None
    for index, token in enumerate(tokens):
        if token.text != "_Pragma":
            continue
        behind = tokens[index + 1 : index + 3]
        if len(behind) == 2 and behind[0].text == "(" and behind[1].kind == "string":
            yield from _pragma_findings(token, _content(behind[1].text).strip())
        else:
            message = "_Pragma is allowed with a string literal only"
            yield token.offset, message, "#pragma unroll takes a number or a constexpr"


def _directive(line: LogicalLine) -> str | None:
    """Return the directive's name; None for an ordinary line, a lone # or a line marker."""
    if not line.is_directive or len(line.tokens) < 2 or line.tokens[1].kind != "identifier":
        return None
    return line.tokens[1].text


def _content(literal: str) -> str:
    """Return what a string literal stands for, escapes of single characters decoded."""
    match = _STRING.match(literal)
    if match is None:
        return literal
    if match["raw"] is not None:
        return match["raw"]
    return _ESCAPE.sub(_unescaped, match["plain"])


def _unescaped(match: re.Match[str]) -> str:
    if match["hex"]:
        return chr(int(match["hex"], 16) % 0x110000)
    if match["octal"]:
        return chr(int(match["octal"], 8))
    return {"n": "\n", "t": "\t"}.get(match[0][1], match[0][1])


_ASM = frozenset({"asm", "__asm", "__asm__"})
_INSTRUCTIONS = frozenset({"volatile", "__volatile__"})
_ATTRIBUTE = frozenset({"__attribute__", "__attribute"})


def declaration_findings(tokens: Sequence[Token]) -> Iterator[Finding]:
    """Yield what is refused in the attributes and `asm` words of `tokens`, the whole source."""
    for index, token in enumerate(tokens):
        if token.kind != "identifier":
            continue
        if token.text in _ASM and not _is_instruction(tokens, index + 1):
            message = f"{token.text} with neither volatile nor operands is not allowed"
            yield token.offset, message, f"write {token.text} volatile(...)"
        elif token.text in _ATTRIBUTE:
            yield from _attribute_findings(tokens, index)


def _is_instruction(tokens: Sequence[Token], start: int) -> bool:
    """Whether what follows `asm` can only be a statement: a declaration has no such words."""
    if start < len(tokens) and tokens[start].text in _INSTRUCTIONS:
        return True
    return any(depth == 1 and token.text == ":" for token, depth in _parenthesized(tokens, start))


def _attribute_findings(tokens: Sequence[Token], index: int) -> Iterator[Finding]:
    word = tokens[index]
    opening = [token.text for token in tokens[index + 1 : index + 3]]
    if opening != ["(", "("]:
        message = f"{word.text} must stand with its whole list: {word.text}((...))"
        yield word.offset, message, None
        return
    for token, depth in _parenthesized(tokens, index + 1):
        if token.kind == "string":
            yield token.offset, "an attribute with a string is not allowed", None
        elif depth == 2 and token.kind == "identifier" and token.text not in ATTRIBUTES:
            allowed = ", ".join(sorted(ATTRIBUTES))
            yield token.offset, f"the attribute {token.text} is not allowed", f"allowed: {allowed}"


def _parenthesized(tokens: Sequence[Token], start: int) -> Iterator[tuple[Token, int]]:
    """Yield each token from the parenthesis at `start` to its partner, with its depth."""
    depth = 0
    for token in tokens[start:]:
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        yield token, depth
        if depth == 0:
            return
