"""A file of a library as chunks: `library_chunks`, a pure function that runs in any process.

What cannot be parsed becomes chunks of kind `gap`; no input is refused.
"""

import re
from collections.abc import Sequence
from importlib.metadata import version

from kopt.tools.docs.code_version import code_version
from kopt.tools.docs.records import Chunk
from kopt.tools.docs.sources import SourceFile, license_of
from kopt.tools.docs.words.tags import facts_of

from .cuda_tree import has_grammar
from .cuda_units import as_cuda, cuda_units
from .gaps import filled
from .python_units import is_worthwhile, python_units
from .sizes import TextPiece, disjoint, joined, pieces
from .units import SourceLines, Unit

LONGEST_BODY = 16_000
"""Characters, three times the p99 of the default sources: of longer bodies long lines are cut."""
LONGEST_LINE = 400
LONGEST_COMMENT = 2_000
_TITLE_NAMES = 3
_HEAD_LINES = 16


CHUNKER_CODE = ("chunking/*", "words/code_tokens.py", "words/tags.*", "sources.py")
"""Glob patterns below tools/docs."""


def library_chunks(file: SourceFile) -> list[Chunk]:
    """Return the chunks of a file in order; none where it says too little."""
    is_python = file.path.endswith(".py")
    text = file.text.removeprefix("\ufeff").replace("\r", " ")
    source = SourceLines(text, is_python)
    units = _python(source) if is_python else cuda_units(_as_parsed(file.path, source))
    found: dict[int, Chunk] = {}
    for unit in joined(units):
        for piece in pieces(unit, source):
            found.setdefault(piece.numbers[0], _chunk(file, piece, source))
    of_the_file = {
        "language": language_of(file.path, text),
        "framework": framework_of(file.path, text),
        "license": license_of(file),
    }
    return [chunk.model_copy(update=of_the_file) for chunk in found.values()]


def chunker_version() -> str:
    """Return what decides the chunks: a hash of the code and the tags, and the grammar."""
    grammar = version("tree-sitter-cuda") if has_grammar() else "scanner"
    return f"{code_version(*CHUNKER_CODE)} {grammar}"


def _python(source: SourceLines) -> list[Unit]:
    units = filled(disjoint(python_units(source)), source)
    return [unit for unit in units if is_worthwhile(unit, source)]


def _as_parsed(path: str, source: SourceLines) -> SourceLines:
    if not path.endswith(".jinja"):
        return source
    return SourceLines(as_cuda(source.text), is_python=False)


def _chunk(file: SourceFile, piece: TextPiece, source: SourceLines) -> Chunk:
    unit, numbers = piece.unit, piece.numbers
    lines = [source.lines[number - 1] for number in numbers]
    body = "\n".join(lines)
    is_cut = len(body) > LONGEST_BODY
    if is_cut:
        body = "\n".join(_cut(line) for line in lines)[: 2 * LONGEST_BODY]
    is_whole = not is_cut and numbers[-1] - numbers[0] + 1 == len(numbers)
    comment = unit.comment[:LONGEST_COMMENT]
    names = f"{unit.symbol or ''} {' '.join(unit.scope)} {file.path} {unit.signature} {comment}"
    facts = facts_of(names, body)
    return Chunk(
        source=file.source.key,
        version=file.source.version,
        quality=file.source.quality,
        path=file.path,
        title=_title(file, unit),
        symbol=unit.symbol,
        kind=unit.kind,
        scope=unit.scope,
        signature=unit.signature,
        start_line=numbers[0],
        end_line=numbers[-1],
        head="" if piece.is_first else _head(unit, source),
        comment=comment,
        tags=facts.tags,
        arch=facts.arch,
        dtype=facts.dtype,
        body=body if is_whole or is_cut else _with_gaps(numbers, lines),
        derived=not is_whole,
    )


def _head(unit: Unit, source: SourceLines) -> str:
    """Return the signature as it is written, without its comment and body."""
    code = (at for at in range(unit.start_line, unit.end_line) if source.is_code[at - 1])
    first = next(code, unit.start_line)
    lines = source.lines[first - 1 : first - 1 + _HEAD_LINES]
    return "\n".join(lines).split("{")[0].rstrip() if unit.signature else ""


def _title(file: SourceFile, unit: Unit) -> str:
    name = file.path.rsplit("/", 1)[-1]
    if unit.symbol is None:
        return f"{file.source.key}: {name}"
    symbols = unit.symbol.split(", ")
    more = ", …" if len(symbols) > _TITLE_NAMES else ""
    return f"{file.source.key}: {', '.join(symbols[:_TITLE_NAMES])}{more}, {name}"


def _with_gaps(numbers: Sequence[int], lines: Sequence[str]) -> str:
    """Return the lines of a type with a remark where members were left out."""
    shown: list[str] = []
    last = numbers[0] - 1
    for number, line in zip(numbers, lines, strict=True):
        if number > last + 1:
            indent = line[: len(line) - len(line.lstrip())]
            shown.append(f"{indent}// ... lines {last + 1} to {number - 1} are a hit of their own")
        shown.append(line)
        last = number
    return "\n".join(shown)


def _cut(line: str) -> str:
    left_out = len(line) - LONGEST_LINE
    return line if left_out <= 0 else f"{line[:LONGEST_LINE]} ... {left_out:,} characters left out"


_CUTLASS = re.compile(r"\bcutlass::|\bcute::|[<\"/]cute/|[<\"/]cutlass/|\bCUTE_|\bCUTLASS_")
_CUTE_DSL = re.compile(r"\bcutlass\.cute\b|\bcute\.(?:jit|kernel)\b|\bfrom cutlass\b")
_TRITON = re.compile(r"\btriton\b")
_DEVICE = re.compile(r"__global__|__device__|\w*_DEVICE\b|\basm\b|<<<")


def language_of(path: str, text: str) -> str:
    """Return `python`, `cuda`, or `c++` for a C++ file without anything of CUDA."""
    if path.endswith(".py"):
        return "python"
    if path.endswith((".cu", ".cuh", ".jinja")) or _DEVICE.search(text):
        return "cuda"
    return "c++"


def framework_of(path: str, text: str) -> str | None:
    """Return `cuda`, `cutlass`, `cute_dsl` or `triton`; None for Python that has none of these."""
    if not path.endswith(".py"):
        return "cutlass" if _CUTLASS.search(text) else "cuda"
    if _CUTE_DSL.search(text):
        return "cute_dsl"
    return "triton" if _TRITON.search(text) else None
