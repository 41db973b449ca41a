"""The chart of all candidates: how fast each is, the best so far, who failed; and that of rounds.

Speed is the yardstick's: more is better, and height is comparable because the axis begins at 0.
"""

from collections.abc import Mapping, Sequence

from .candidate_report import CandidateReport
from .run_report import RunReport
from .svg import Scale, figure, line, mark, polyline, text, value_axis
from .yardstick import Yardstick, title_of, yardstick_of

_WIDTH, _HEIGHT = 860, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 30, 40
_BASE = _HEIGHT - _BOTTOM


def candidate_chart(report: RunReport) -> str:
    """Return an SVG element; candidates without a speed are crosses on the axis."""
    yardstick = yardstick_of(report)
    entries = report.population
    across = Scale(-0.5, max(len(entries), 1) - 0.5, _LEFT, _WIDTH - _RIGHT)
    up = _speed_scale([yardstick.speed(entry) for entry in entries])
    parts = [*_frame(up, yardstick.words, "candidate"), *_round_marks(entries, across)]
    parts.append(polyline("best", _best_line(entries, across, up, yardstick)))
    for entry in entries:
        x, speed = across.px(entry.seq), yardstick.speed(entry)
        interval = yardstick.interval(entry)
        if interval is not None:
            parts.append(line("spread", (x, up.px(interval[0])), (x, up.px(interval[1]))))
        place = (x, _BASE if speed is None else up.px(speed))
        parts.append(mark(mark_kind(entry, report.winner), place, title_of(entry, yardstick)))
    label = f"Speed of every candidate in the order of proposal: {yardstick.words}"
    return figure((_WIDTH, _HEIGHT), label, parts)


def round_chart(report: RunReport) -> str:
    """Return an SVG element: the best after each round, with its interval where it has one."""
    yardstick = yardstick_of(report)
    by_seq = {entry.seq: entry for entry in report.population}
    rounds = [(one.round, by_seq[one.best]) for one in report.round_figures if one.best is not None]
    across = Scale(-0.5, max(len(report.round_figures), 1) - 0.5, _LEFT, _WIDTH - _RIGHT)
    up = _speed_scale([yardstick.speed(entry) for _, entry in rounds])
    parts = _frame(up, yardstick.words, "round")
    places: list[tuple[float, float]] = []
    for number, entry in rounds:
        x, speed = across.px(number), yardstick.speed(entry)
        if speed is None:
            continue
        places.append((x, up.px(speed)))
        interval = yardstick.interval(entry)
        if interval is not None:
            parts += _error_bar(x, up.px(interval[0]), up.px(interval[1]))
        parts.append(mark("kept", places[-1], title_of(entry, yardstick)))
        top = up.px(interval[1] if interval else speed)
        parts.append(text(x, top - 10, f"{yardstick.told(entry)} #{entry.seq}", "middle"))
    parts.insert(0, polyline("best", places))
    kinds: Mapping[int, str] = {one.round: one.kind for one in report.round_figures}
    parts += [
        text(across.px(number), _BASE + 16, f"{number} {kind}", "middle")
        for number, kind in kinds.items()
    ]
    label = f"Best candidate after each round: {yardstick.words}"
    return figure((_WIDTH, _HEIGHT), label, parts)


def mark_kind(entry: CandidateReport, winner: int | None) -> str:
    """Return the kind of mark that stands for a candidate in every chart."""
    if entry.seq == winner:
        return "winner"
    if entry.status is None:
        return "open"
    if entry.status != "passed":
        return "failed"
    return "kept" if entry.in_beam else "passed"


def _speed_scale(speeds: Sequence[float | None]) -> Scale:
    highest = max((speed for speed in speeds if speed is not None), default=1.0)
    return Scale(0.0, max(highest, 1.0) * 1.15, _BASE, _TOP)


def _frame(up: Scale, unit: str, across_words: str) -> list[str]:
    parts = value_axis(up, (_LEFT, _WIDTH - _RIGHT), unit)
    parts.append(line("axis", (_LEFT, _BASE), (_WIDTH - _RIGHT, _BASE)))
    parts.append(line("even", (_LEFT, up.px(1.0)), (_WIDTH - _RIGHT, up.px(1.0))))
    parts.append(text(_WIDTH / 2, _HEIGHT - 6, across_words, "middle"))
    return parts


def _round_marks(entries: Sequence[CandidateReport], across: Scale) -> list[str]:
    """Return a thin line and a number where a round begins."""
    firsts: dict[int, int] = {}
    for entry in entries:
        firsts.setdefault(entry.round, entry.seq)
    parts: list[str] = []
    for number, seq in firsts.items():
        x = across.px(seq - 0.5)
        parts += [line("grid", (x, _TOP), (x, _BASE)), text(x + 3, _BASE + 14, f"round {number}")]
    return parts


def _best_line(
    entries: Sequence[CandidateReport], across: Scale, up: Scale, yardstick: Yardstick
) -> list[tuple[float, float]]:
    """Return the steps of the best so far."""
    points: list[tuple[float, float]] = []
    best: float | None = None
    for entry in entries:
        speed = yardstick.speed(entry)
        if best is not None:
            points.append((across.px(entry.seq), up.px(best)))
        if speed is not None and (best is None or speed > best):
            best = speed
            points.append((across.px(entry.seq), up.px(best)))
    return points


def _error_bar(x: float, low_y: float, high_y: float) -> list[str]:
    ends = [line("spread", (x - 4, y), (x + 4, y)) for y in (low_y, high_y)]
    return [line("spread", (x, low_y), (x, high_y)), *ends]
