"""The tree of candidates: a column a round, a line from each parent, family and verdict beside.

The way to the winner is drawn strong. A candidate with two parents has two lines.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

from .candidate_chart import mark_kind
from .candidate_report import CandidateReport
from .run_report import RunReport
from .svg import figure, line, mark, text
from .yardstick import Yardstick, title_of, yardstick_of

_COLUMN, _ROW = 210, 22
_LEFT, _TOP = 20, 34
_LABEL_CHARACTERS = 28  # what fits between two columns
_LETTER = 6.8  # pixels of one of them, on average

Place = tuple[float, float]


def tree_chart(report: RunReport) -> str:
    """Return an SVG element with every candidate of the run."""
    columns = _columns(report.population)
    places = _places(columns)
    chosen = _ancestry(report)
    parts = [
        text(_LEFT + number * _COLUMN, 16, f"round {number}") for number in range(len(columns))
    ]
    yardstick = yardstick_of(report)
    labels = {entry.seq: _label(entry, yardstick) for entry in report.population}
    for entry in report.population:
        for parent in entry.parents:
            kind = "chosen" if {entry.seq, parent} <= chosen else "edge"
            begin = _behind(places[parent], labels[parent], places[entry.seq])
            parts.append(line(kind, begin, places[entry.seq]))
    for entry in report.population:
        x, y = places[entry.seq]
        parts.append(mark(mark_kind(entry, report.winner), (x, y), title_of(entry, yardstick)))
        parts.append(text(x + 10, y + 4, labels[entry.seq]))
    size = (_LEFT + _COLUMN * max(len(columns), 1), _TOP + _ROW * max(map(len, columns), default=1))
    return figure(size, "Tree of candidates by round, each with family and verdict", parts)


def _columns(entries: Sequence[CandidateReport]) -> list[list[CandidateReport]]:
    """Return the candidates of each round, from the first to the last round that has any."""
    last = max((entry.round for entry in entries), default=-1)
    return [[entry for entry in entries if entry.round == number] for number in range(last + 1)]


def _places(columns: Sequence[Sequence[CandidateReport]]) -> dict[int, Place]:
    """Return where each candidate stands: near its parents, as far as a column has room."""
    places: dict[int, Place] = {}
    for number, column in enumerate(columns):
        ordered = sorted(column, key=lambda entry: (_height(entry, places), entry.seq))
        for row, entry in enumerate(ordered):
            places[entry.seq] = (_LEFT + number * _COLUMN, _TOP + row * _ROW)
    return places


def _height(entry: CandidateReport, places: Mapping[int, Place]) -> float:
    """Return the mean height of the parents that have a place."""
    heights = [places[parent][1] for parent in entry.parents if parent in places]
    return fmean(heights) if heights else 0.0


def _behind(parent: Place, label: str, child: Place) -> Place:
    """Return where a line begins: behind the parent's label, unless the child is in its column."""
    x, y = parent
    return parent if child[0] == x else (x + 14 + _LETTER * len(label), y)


def _ancestry(report: RunReport) -> set[int]:
    """Return the winner with all that it comes from."""
    parents = {entry.seq: entry.parents for entry in report.population}
    found: set[int] = set()
    open_ends = [] if report.winner is None else [report.winner]
    while open_ends:
        seq = open_ends.pop()
        if seq not in found:
            found.add(seq)
            open_ends += parents[seq]
    return found


def _label(entry: CandidateReport, yardstick: Yardstick) -> str:
    verdict = yardstick.speed(entry)
    outcome = f"{verdict:.2f}x" if verdict is not None else entry.status or "open"
    words = f"#{entry.seq} {entry.family} {outcome}"
    return words if len(words) <= _LABEL_CHARACTERS else f"{words[: _LABEL_CHARACTERS - 1]}…"
