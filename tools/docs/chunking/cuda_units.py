"""CUDA C++ as units: what the grammar and the brace scanner find, each where it reads better.

The grammar knows names, operators and members, but sees unmatched brackets where `#if` and macros
are between; the scanner follows these. Functions are where the scanner sees them, unless it lost
its way, with what the grammar says of the same lines. Templates (`.jinja`) are read as C++.
"""

import re
from collections.abc import Iterable, Sequence

from .cuda_scan import opened, scanned_units
from .cuda_tree import has_grammar, tree_units
from .gaps import filled
from .sizes import disjoint
from .units import SourceLines, Unit

LARGEST_LOSS = 0.03
"""Share of code lines that the scanner leaves out if it kept its way."""

_STATEMENT = re.compile(r"\{%.*?%\}|\{#.*?#\}", re.DOTALL)
_EXPRESSION = re.compile(r"\{\{(.*?)\}\}")
_WITH_BODY = ("kernel", "device", "host", "struct")


def cuda_units(source: SourceLines) -> list[Unit]:
    """Return the units of a file in order; every line of code is in one."""
    scanned = scanned_units(source)
    if not has_grammar():
        units = [part for unit in scanned for part in opened(unit, source)]
    elif _share_left_out(scanned, source) <= LARGEST_LOSS:
        units = _agreed(tree_units(source), scanned, source)
    else:
        units = tree_units(source)
    return filled(disjoint(units), source)


def as_cuda(template: str) -> str:
    """Return a Jinja template as C++ of the same lines: statements blank, expressions names."""
    text = _STATEMENT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), template)
    return _EXPRESSION.sub(lambda match: re.sub(r"\W+", "_", match[1].strip()) or "_", text)


def _agreed(parsed: Sequence[Unit], scanned: Sequence[Unit], source: SourceLines) -> list[Unit]:
    """Return the functions and types of `scanned`, and what `parsed` has between them.

    Where both end in the same line and are of one kind, that of `parsed` is taken with its members.
    """
    by_lines = {(unit.start_line, unit.end_line): unit for unit in parsed}
    members = {lines for unit in parsed for lines in unit.folded}
    whole = [unit for unit in parsed if (unit.start_line, unit.end_line) not in members]
    by_end = {unit.end_line: unit for unit in whole if unit.kind in _WITH_BODY}
    found: list[Unit] = []
    taken = bytearray(len(source.lines))
    for unit in scanned:
        if unit.kind not in _WITH_BODY:
            continue
        same = by_end.get(unit.end_line)
        if same and same.kind == unit.kind and same.start_line >= unit.start_line:
            unit = same
            found += [unit, *(by_lines[lines] for lines in unit.folded)]
        else:
            found += opened(unit, source)
        taken[unit.start_line - 1 : unit.end_line] = b"\1" * unit.lines
    between = [unit for unit in whole if not any(taken[unit.start_line - 1 : unit.end_line])]
    return [*found, *between]


def _share_left_out(units: Iterable[Unit], source: SourceLines) -> float:
    covered = bytearray(len(source.lines))
    for unit in units:
        covered[unit.start_line - 1 : unit.end_line] = b"\1" * unit.lines
    code = sum(source.is_code)
    held = sum(a and b for a, b in zip(covered, source.is_code, strict=True))
    return 1 - held / code if code else 0.0
