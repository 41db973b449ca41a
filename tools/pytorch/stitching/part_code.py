"""Device code of one part in a candidate with that of others: its own namespace and names.

Kernels are `extern "C"`, macros know no namespace: both get the part's prefix. Everything else of
a part is in a namespace of its own, and includes stand before all of them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

from kopt.config.errors import ToolError
from kopt.kernels.source_lexer import LogicalLine, Token, logical_lines

_HEADER_END = "*/"


@dataclass(frozen=True)
class PartCode:
    """What a part adds to the text of the whole."""

    includes: tuple[str, ...]
    """Names with their brackets, in order."""
    text: str


def renamed_code(source: str, namespace: str, names: Mapping[str, str]) -> PartCode:
    """Return the code of a candidate with other names for its kernels, tune values and axes.

    Args:
        source: The whole candidate, its header included.
        namespace: Of the part; macros begin with it.
        names: New names, or numbers, by the identifiers of the source.

    Raises:
        ToolError: It opens a namespace of a library, which would be another inside its own.
    """
    code = source[source.index(_HEADER_END) + len(_HEADER_END) :]
    lines = logical_lines(code)
    macros = {name: f"{namespace}_{name}" for line in lines if (name := _defined(line))}
    every = {**macros, **names}
    includes: list[str] = []
    edits: list[tuple[int, int, str]] = []
    for line in lines:
        _refuse_library_namespaces(line)
        if _directive(line) == "include":
            includes.append(line.tokens[2].text)
            last = line.tokens[-1]
            edits.append((line.tokens[0].offset, last.offset + len(last.text), ""))
            continue
        for token in line.tokens:
            if token.kind == "identifier" and token.text in every:
                end = token.offset + len(token.text)
                edits.append((token.offset, end, every[token.text]))
    return PartCode(tuple(includes), _edited(code, edits).strip())


def parameter_type(source: str, kernel: str, place: int) -> str:
    """Return `int64` if a kernel's parameter is an integer of 64 bits, else `int32`."""
    tokens = [token for line in logical_lines(source) for token in line.tokens]
    for number, token in enumerate(tokens):
        if token.text == kernel and _is_definition(tokens, number):
            words = _parameters(tokens, number + 1)[place]
            is_wide = any("64" in one or one in ("long", "size_t") for one in words)
            return "int64" if is_wide else "int32"
    return "int32"


def _is_definition(tokens: list[Token], number: int) -> bool:
    before = [token.text for token in tokens[max(number - 1, 0) : number]]
    return before in (["void"], [")"]) and tokens[number + 1].text == "("


def _parameters(tokens: list[Token], opening: int) -> list[list[str]]:
    """Return the words of each parameter, from the parenthesis that opens them."""
    found: list[list[str]] = [[]]
    depth = 0
    for token in tokens[opening:]:
        depth += (token.text in "(<[") - (token.text in ")>]")
        if depth == 0:
            break
        if token.text == "," and depth == 1:
            found.append([])
        else:
            found[-1].append(token.text)
    return found


def _directive(line: LogicalLine) -> str | None:
    if not line.is_directive or len(line.tokens) < 2:
        return None
    return line.tokens[1].text


def _defined(line: LogicalLine) -> str | None:
    """Return the macro that a line defines."""
    if _directive(line) != "define" or len(line.tokens) < 3:
        return None
    return line.tokens[2].text


def _refuse_library_namespaces(line: LogicalLine) -> None:
    words = [token.text for token in line.tokens]
    for first, second in pairwise(words):
        if first == "namespace" and second in ("std", "cuda", "kopt", "cooperative_groups"):
            is_opened = "{" in words and "using" not in words
            if is_opened and "=" not in words:
                raise ToolError(
                    f"it opens the namespace {second}, which would be another one inside the"
                    " namespace of its part: write the name out instead"
                )


def _edited(text: str, edits: list[tuple[int, int, str]]) -> str:
    parts: list[str] = []
    start = 0
    for begin, end, new in sorted(edits):
        parts += [text[start:begin], new]
        start = end
    return re.sub(r"\n{3,}", "\n\n", "".join([*parts, text[start:]]))
