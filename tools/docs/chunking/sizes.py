"""Units in sizes that can be read and ranked: tiny neighbors joined, long ones cut."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kopt.tools.docs.records import Kind

from .units import SourceLines, Unit

TINY = 10
"""Lines of a unit that is joined with its neighbors unless it is a kernel."""
LARGEST_JOINED = 45
WIDEST_GAP = 3
"""Lines between two units that are joined."""
LEAST_CODE_LINES = 3
TELLING_COMMENT = 80
"""Characters of what explains device code of fewer lines."""
LONG_LINE = 400
"""Characters; a line that holds a whole function counts as enough."""
MOST_NAMES = 40
LONGEST_TEXT = 2000
"""Characters of the comments and signatures of units that were joined."""
_MOST_TELLING: tuple[Kind, ...] = ("kernel", "device", "struct", "class", "host", "decl", "gap")


@dataclass(frozen=True)
class TextPiece:
    """A part of a unit that becomes one chunk."""

    unit: Unit
    numbers: tuple[int, ...]
    """Numbers of its lines, ascending; those of members that are units of their own are left
    out."""
    is_first: bool


def disjoint(units: Sequence[Unit]) -> list[Unit]:
    """Return `units` in order, as one where they share a line; members stay in their type."""
    found: list[Unit] = []
    last = 0
    members: set[int] = set()
    for unit in sorted(units, key=lambda unit: (unit.start_line, -unit.end_line)):
        if unit.start_line > last or unit.start_line in members:
            found.append(unit)
        else:
            found[-1] = _together(found[-1], unit)
        last = max(last, unit.end_line)
        members.update(first for first, _last in unit.folded)
    return found


def joined(units: Sequence[Unit]) -> list[Unit]:
    """Return `units` with neighbors of at most TINY lines as one."""
    found: list[Unit] = []
    for unit in units:
        last = found[-1] if found else None
        if last is not None and _belong(last, unit):
            found[-1] = _together(last, unit)
        else:
            found.append(unit)
    return found


def pieces(unit: Unit, source: SourceLines) -> list[TextPiece]:
    """Return `unit` in overlapping pieces of at most MOST_LINES lines, without idle ones."""
    numbers = _shown(unit)
    found: list[TextPiece] = []
    for first, last in line_ranges(0, len(numbers) - 1):
        part = numbers[first : last + 1]
        fresh = part if first == 0 else part[OVERLAP_LINES:]
        if _says_enough(fresh, source) or _is_explained(unit):
            found.append(TextPiece(unit, part, is_first=first == 0))
    return found


def _says_enough(numbers: Sequence[int], source: SourceLines) -> bool:
    code = [source.lines[number - 1] for number in numbers if source.is_code[number - 1]]
    return len(code) >= LEAST_CODE_LINES or any(len(line) > LONG_LINE for line in code)


def _is_explained(unit: Unit) -> bool:
    """Say whether a comment makes up for little code: one PTX instruction and what it is for."""
    return unit.kind in ("kernel", "device") and len(unit.comment) >= TELLING_COMMENT


def _belong(one: Unit, other: Unit) -> bool:
    tiny = all(_is_tiny(unit) for unit in (one, other))
    near = 0 < other.start_line - one.end_line <= WIDEST_GAP + 1
    return tiny and near and other.end_line - one.start_line < LARGEST_JOINED


def _is_tiny(unit: Unit) -> bool:
    return unit.kind != "kernel" and (unit.lines <= TINY or _is_joined(unit))


def _is_joined(unit: Unit) -> bool:
    return unit.symbol is not None and ", " in unit.symbol


def _together(one: Unit, other: Unit) -> Unit:
    names = [name for unit in (one, other) if unit.symbol for name in unit.symbol.split(", ")]
    kind = min((one.kind, other.kind), key=_MOST_TELLING.index)
    signatures = [unit.signature for unit in (one, other) if unit.signature]
    return replace(
        one,
        kind=kind,
        symbol=", ".join(list(dict.fromkeys(names))[:MOST_NAMES]) or None,
        end_line=max(one.end_line, other.end_line),
        scope=_common(one.scope, other.scope),
        comment=" ".join(part for part in (one.comment, other.comment) if part)[:LONGEST_TEXT],
        signature="; ".join(signatures)[:LONGEST_TEXT],
    )


def _shown(unit: Unit) -> tuple[int, ...]:
    folded = {number for first, last in unit.folded for number in range(first, last + 1)}
    return tuple(
        number for number in range(unit.start_line, unit.end_line + 1) if number not in folded
    )


def _common(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """Return the scopes that both are in."""
    shared = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        shared += 1
    return one[:shared]


MOST_LINES = 90
OVERLAP_LINES = 8


def line_ranges(start_line: int, end_line: int) -> list[tuple[int, int]]:
    """Return the (first, last) lines of the pieces; one piece up to MOST_LINES lines."""
    found: list[tuple[int, int]] = []
    first = start_line
    while end_line - first + 1 > MOST_LINES:
        found.append((first, first + MOST_LINES - 1))
        first += MOST_LINES - OVERLAP_LINES
    return [*found, (first, end_line)]
