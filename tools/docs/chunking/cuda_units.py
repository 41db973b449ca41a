"""CUDA C++ as units: what the grammar and the brace scanner find, each where it reads better.

Functions are where the scanner sees them, which follows `#if` and macros, with what the grammar
says of the same lines; the grammar has the rest. Templates (`.jinja`) are read as C++.
"""

import re
from collections.abc import Callable, Sequence

from .brace_scanner import ends_in_comment
from .cuda_scan import opened, scanned_units
from .cuda_tree import has_grammar, tree_units
from .gaps import filled
from .sizes import disjoint
from .units import SourceLines, Unit

_TYPE = re.compile(r"\b(?:struct|class|union|enum)\b")
_WITH_BODY = ("kernel", "device", "host", "struct")


def cuda_units(source: SourceLines) -> list[Unit]:
    """Return the units of a file in order; every line of code is in one."""
    units = scanned_units(source)
    # Of a comment without an end the grammar tries each `/*` in turn: minutes for 400 kB.
    if has_grammar() and not ends_in_comment(source.text):
        units = _agreed(tree_units(source), units, source)
    return filled(disjoint([part for unit in units for part in opened(unit, source)]), source)


def as_cuda(template: str) -> str:
    """Return a Jinja template as C++ of the same lines: statements blank, expressions names."""
    text = _replaced(template, ("{#", "#}"), _blank)
    text = _replaced(text, ("{%", "%}"), _blank)
    return _replaced(text, ("{{", "}}"), _name)


def _replaced(text: str, marks: tuple[str, str], by: Callable[[str], str]) -> str:
    """Return `text` with `by(inner)` for what stands between `marks`; unclosed ones stay."""
    opening, closing = marks
    first, *rest = text.split(opening)
    made = [first]
    for part in rest:
        inner, closed, after = part.partition(closing)
        made.append(by(inner) + after if closed else opening + part)
    return "".join(made)


def _blank(inner: str) -> str:
    return "\n" * inner.count("\n")


def _name(inner: str) -> str:
    return "_".join(re.findall(r"\w+", inner)) + _blank(inner)


def _agreed(parsed: Sequence[Unit], scanned: Sequence[Unit], source: SourceLines) -> list[Unit]:
    """Return the functions and types of `scanned`, and what `parsed` has between them.

    Where both mean the same lines, the unit of `parsed` is taken.
    """
    by_end = {unit.end_line: unit for unit in parsed if unit.kind in _WITH_BODY}
    found: list[Unit] = []
    taken = bytearray(len(source.lines))
    for unit in scanned:
        if unit.kind not in _WITH_BODY:
            continue
        same = by_end.get(unit.end_line)
        better = same if same is not None and _is_better(same, unit) else unit
        found.append(better)
        taken[better.start_line - 1 : better.end_line] = b"\1" * better.lines
    between = [unit for unit in parsed if not any(taken[unit.start_line - 1 : unit.end_line])]
    return [*found, *between]


def _is_better(parsed: Unit, scanned: Unit) -> bool:
    """Say whether the grammar's unit is what the scanner saw; both end in the same line."""
    if parsed.start_line < scanned.start_line:
        return False
    if parsed.start_line > scanned.start_line and parsed.symbol == scanned.symbol:
        return parsed.kind == "struct"  # of a function the beginning was misread
    if parsed.kind in (scanned.kind, "kernel"):
        return True
    return parsed.kind == "struct" and _TYPE.search(scanned.signature) is not None
