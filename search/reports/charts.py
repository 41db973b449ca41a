"""The charts of a run: all candidates, the tree, the roofline.

Speed is the yardstick's: more is better, and height is comparable because the axis begins at 0.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean

from kopt.kernels.roofline import ByteModel, Roofline

from .candidate_report import CandidateReport
from .run_report import RunReport
from .sections import Yardstick, title_of, yardstick_of
from .svg import LogScale, Scale, figure, line, mark, polyline, text, value_axis

_WIDTH, _HEIGHT = 640, 300  # the size of the roofline
_NARROWEST, _WIDEST, _STEP = 350, 860, 34  # pixels: a phone, the page, between two candidates
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 16, 24, 40
_BASE = _HEIGHT - _BOTTOM


def candidate_chart(report: RunReport) -> str:
    """Return an SVG element; candidates without a speed are crosses on the axis."""
    yardstick = yardstick_of(report)
    entries = report.population
    width = min(_WIDEST, max(_NARROWEST, _LEFT + _RIGHT + _STEP * len(entries)))
    across = Scale(-0.5, max(len(entries), 1) - 0.5, _LEFT, width - _RIGHT)
    up = _speed_scale([yardstick.speed(entry) for entry in entries])
    parts = [*_frame(up, across), *_round_marks(entries, across)]
    parts.append(polyline("best", _best_line(entries, across, up, yardstick)))
    for entry in entries:
        x, speed = across.px(entry.seq), yardstick.speed(entry)
        interval = yardstick.interval(entry)
        if interval is not None:
            parts.append(line("spread", (x, up.px(interval[0])), (x, up.px(interval[1]))))
        place = (x, _BASE if speed is None else up.px(speed))
        parts.append(mark(mark_kind(entry, report.winner), place, title_of(entry, yardstick)))
        if entry.seq == report.winner and speed is not None:
            parts.append(
                text(x, up.px(speed) - 10, f"#{entry.seq} {speed:.3f}x", _anchor(x, width))
            )
    label = f"Speed of every candidate in the order of proposal: {yardstick.words}"
    return figure((width, _HEIGHT), label, parts)


def _anchor(x: float, width: float) -> str:
    """Return which end of a word stands at `x`, so that it does not leave the chart."""
    if x > width - 60:
        return "end"
    return "start" if x < _LEFT + 40 else "middle"


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


def _frame(up: Scale, across: Scale) -> list[str]:
    begin, end = across.begin_px, across.end_px
    parts = value_axis(up, (begin, end), "")
    parts.append(line("axis", (begin, _BASE), (end, _BASE)))
    parts.append(line("even", (begin, up.px(1.0)), (end, up.px(1.0))))
    words = "candidates in the order of proposal, by round"
    parts.append(text((begin + end) / 2, _HEIGHT - 6, words, "middle"))
    return parts


def _round_marks(entries: Sequence[CandidateReport], across: Scale) -> list[str]:
    """Return a thin line and a number where a round begins."""
    firsts: dict[int, int] = {}
    for entry in entries:
        firsts.setdefault(entry.round, entry.seq)
    parts: list[str] = []
    for number, seq in firsts.items():
        x = across.px(seq - 0.5)
        parts += [line("grid", (x, _TOP), (x, _BASE)), text(x + 3, _BASE + 14, str(number))]
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


_COLUMN, _ROW = 210, 22
_TREE_LEFT, _TREE_TOP = 20, 34
_LABEL_CHARACTERS = 28  # what fits between two columns
_LETTER = 6.8  # pixels of one of them, on average

Place = tuple[float, float]


def tree_chart(report: RunReport) -> str:
    """Return an SVG element: a column a round, the way to the winner strong.

    A line comes from each parent: a candidate with two has two lines.
    """
    columns = _columns(report.population)
    places = _places(columns)
    chosen = _ancestry(report)
    parts = [
        text(_TREE_LEFT + number * _COLUMN, 16, f"round {number}") for number in range(len(columns))
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
    size = (
        _TREE_LEFT + _COLUMN * max(len(columns), 1),
        _TREE_TOP + _ROW * max(map(len, columns), default=1),
    )
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
            places[entry.seq] = (_TREE_LEFT + number * _COLUMN, _TREE_TOP + row * _ROW)
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


def roofline_chart(report: RunReport, model: ByteModel, roof: Roofline) -> str | None:
    """Return an SVG element, both axes logarithmic; None without floating-point operations.

    All candidates do the work of the same definition, so they stand above each other: at its
    arithmetic intensity, as high as the operations that they do per second.
    """
    timed = [entry for entry in report.population if entry.latency_us]
    if not model.flop or not timed:
        return None
    # 1e12 operations per second = 1e6 operations per microsecond
    heights = {e.seq: model.flop / (e.latency_us or 1.0) / 1e6 for e in timed}
    peak = roof.attainable_tflop_s * max(1.0, roof.ridge_flop_per_byte / roof.flop_per_byte)
    across = LogScale(
        min(roof.flop_per_byte, roof.ridge_flop_per_byte) / 10,
        max(roof.flop_per_byte, roof.ridge_flop_per_byte) * 10,
        _LEFT,
        _WIDTH - _RIGHT,
    )
    up = LogScale(min(heights.values()) / 3, peak * 3, _HEIGHT - _BOTTOM, _TOP)
    parts = value_axis(up, (_LEFT, _WIDTH - _RIGHT), "Tflop/s")
    parts += _roof(roof, peak, across, up)
    launch = model.flop / roof.null_kernel_us / 1e6
    if up.low < launch < up.high:
        ends = ((_LEFT, up.px(launch)), (_WIDTH - _RIGHT, up.px(launch)))
        words = text(_WIDTH - _RIGHT, up.px(launch) - 5, "an empty kernel's time", "end")
        parts += [line("even", *ends), words]
    copy = 0.0 if not report.plain_copy_us else model.flop / report.plain_copy_us / 1e6
    if up.low < copy < up.high:
        ends = ((_LEFT, up.px(copy)), (_WIDTH - _RIGHT, up.px(copy)))
        words = text(_LEFT + 8, up.px(copy) - 5, "a plain copy's time, measured")
        parts += [line("even", *ends), words]
    yardstick = yardstick_of(report)
    x = across.px(roof.flop_per_byte)
    for entry in timed:
        place = (x, up.px(heights[entry.seq]))
        parts.append(mark(mark_kind(entry, report.winner), place, title_of(entry, yardstick)))
    label = f"Candidates under the roofline of {roof.gpu}; operations and bytes computed"
    return figure((_WIDTH, _HEIGHT), label, parts)


def _roof(roof: Roofline, peak: float, across: LogScale, up: LogScale) -> list[str]:
    """Return both arms, the intensity of the workload and the axis below."""
    base = up.begin_px
    bandwidth = peak / roof.ridge_flop_per_byte  # Tflop/s per flop/byte = TB/s
    lowest = max(across.low, up.low / bandwidth)
    arms = [(lowest, lowest * bandwidth), (roof.ridge_flop_per_byte, peak), (across.high, peak)]
    x = across.px(roof.flop_per_byte)
    middle = (lowest * roof.ridge_flop_per_byte) ** 0.5
    parts = [
        polyline("roof", [(across.px(at), up.px(height)) for at, height in arms]),
        text(across.end_px, up.px(peak) - 6, f"{peak:.0f} Tflop/s fp32", "end"),
        text(
            across.px(middle) - 8,
            up.px(middle * bandwidth) - 8,
            f"{bandwidth:.2f} TB/s DRAM",
            "end",
        ),
        line("even", (x, up.px(roof.attainable_tflop_s)), (x, base)),
        text(x + 8, base - 6, f"{roof.flop_per_byte:.2g} flop/byte"),
        line("axis", (across.begin_px, base), (across.end_px, base)),
        text((across.begin_px + across.end_px) / 2, base + 32, "flop per byte", "middle"),
    ]
    parts += [text(across.px(tick), base + 16, f"{tick:g}", "middle") for tick in across.ticks()]
    return parts
