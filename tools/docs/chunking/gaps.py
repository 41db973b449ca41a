"""What the parser of a file left out, so that no line of code is lost.

tree-sitter misreads signatures with macros or directives in them. A short rest right above a unit
belongs to it; a longer one is read again by the brace scanner, and what that cannot name is a chunk
of kind `gap`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .cuda_names import function_kind, signature_of
from .cuda_scan import scanned_units
from .units import SourceLines, Unit, one_line, plain_comment

LONGEST_JOINED = 14
"""Code lines right above a unit that are taken for the rest of its signature."""


@dataclass(frozen=True)
class _Run:
    """Lines that no unit holds, from the first to the last line of code among them."""

    first: int
    last: int
    below: int | None
    """Index of the unit that follows with nothing but comments and blanks between."""


def filled(units: Sequence[Unit], source: SourceLines) -> list[Unit]:
    """Return `units` in order, with units for the code lines that they leave out."""
    kept = list(units)
    found: list[Unit] = []
    for run in _runs(kept, source):
        code = source.code_lines(run.first, run.last)
        if source.is_python:
            found.append(_gap(run.first, run.last, source))
        elif run.below is not None and code <= LONGEST_JOINED:
            kept[run.below] = _joined(run, kept[run.below], source)
        else:
            found += _rescued(run, source)
    return sorted([*kept, *found], key=lambda unit: (unit.start_line, -unit.end_line))


def _runs(units: Sequence[Unit], source: SourceLines) -> Iterator[_Run]:
    covered = bytearray(len(source.lines))
    starts: dict[int, int] = {}
    for index, unit in enumerate(units):
        covered[unit.start_line - 1 : unit.end_line] = b"\1" * unit.lines
        starts.setdefault(unit.start_line, index)
    first = last = 0
    for number, (is_covered, is_code) in enumerate(
        zip(covered, source.is_code, strict=True), start=1
    ):
        if is_covered:
            if first:
                yield _Run(first, last, starts.get(number))
            first = 0
        elif is_code:
            first, last = first or number, number
    if first:
        yield _Run(first, last, None)


def _joined(run: _Run, unit: Unit, source: SourceLines) -> Unit:
    """Return `unit` with the lines of `run` above it."""
    rest = signature_of("\n".join(source.lines[run.first - 1 : run.last]))
    signature = one_line(f"{rest} {unit.signature}")
    is_function = unit.kind in ("device", "host")
    start = source.comment_start(run.first)
    return replace(
        unit,
        kind=function_kind(signature) if is_function else unit.kind,
        start_line=start,
        comment=plain_comment(source.lines[start - 1 : run.first - 1]) or unit.comment,
        signature=signature,
    )


def _rescued(run: _Run, source: SourceLines) -> list[Unit]:
    """Return what the scanner names in `run`; all of it is one gap if that leaves much out."""
    units = [
        unit for unit in scanned_units(source, run.first, run.last) if unit.end_line <= run.last
    ]
    named = sum(source.code_lines(unit.start_line, unit.end_line) for unit in units)
    if 2 * named < source.code_lines(run.first, run.last):
        return [_gap(run.first, run.last, source)]
    rest = [_gap(left.first, left.last, source) for left in _within(run, units, source)]
    return [*units, *rest]


def _within(run: _Run, units: Sequence[Unit], source: SourceLines) -> Iterator[_Run]:
    for left in _runs(units, source):
        first, last = max(left.first, run.first), min(left.last, run.last)
        if first <= last:
            yield _Run(first, last, None)


def _gap(first: int, last: int, source: SourceLines) -> Unit:
    start = source.comment_start(first)
    comment = plain_comment(source.lines[start - 1 : first - 1])
    return Unit("gap", None, start, last, comment=comment)
