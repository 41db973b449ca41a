"""Attributes and `asm`: what a candidate may say about where its code lies and what it is called.

A compiler copies the string of an attribute, or of an `asm` that renames a declaration, into its
output as it stands. What is text to the front end is then code to the assembler, behind every check
of the code. So attributes come from a closed list without strings, and `asm` is for instructions
only.
"""

from collections.abc import Iterator, Sequence

from .source_lexer import Token
from .source_macros import Finding
from .source_names import ATTRIBUTES

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
