"""The chart of a run as SVG text: every candidate's time, the best so far, failures on the axis."""

from collections.abc import Sequence
from html import escape
from math import floor, log10

from .candidate_report import CandidateReport

_WIDTH, _HEIGHT = 860, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 16, 40


class _Scales:
    """Candidate number and latency to pixels; latency is linear from 0, so that heights compare."""

    def __init__(self, count: int, highest_us: float) -> None:
        self.highest_us = highest_us * 1.05
        self._step = (_WIDTH - _LEFT - _RIGHT) / max(count, 1)

    def x(self, seq: float) -> float:
        return _LEFT + (seq + 0.5) * self._step

    def y(self, latency_us: float) -> float:
        return _HEIGHT - _BOTTOM - latency_us / self.highest_us * (_HEIGHT - _TOP - _BOTTOM)


def latency_chart(population: Sequence[CandidateReport], winner: int | None) -> str:
    """Return an SVG element; candidates without a latency are crosses on the axis.

    Marks differ in shape as well as color; a tooltip says what each one is.
    """
    latencies = [entry.latency_us for entry in population if entry.latency_us is not None]
    scales = _Scales(len(population), max(latencies, default=1.0))
    parts = [*_axes(scales, population), _best_line(scales, population)]
    parts += [_mark(scales, entry, entry.seq == winner) for entry in population]
    label = "Time of every candidate, in the order of evaluation"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
    )


def _axes(scales: _Scales, population: Sequence[CandidateReport]) -> list[str]:
    base = _HEIGHT - _BOTTOM
    lines = [f'<line class="axis" x1="{_LEFT}" y1="{base}" x2="{_WIDTH - _RIGHT}" y2="{base}"/>']
    step_us = _round_step(scales.highest_us / 4)
    tick_us = 0.0
    while tick_us <= scales.highest_us:
        y = scales.y(tick_us)
        lines.append(
            f'<line class="grid" x1="{_LEFT}" y1="{y:.1f}" x2="{_WIDTH - _RIGHT}" y2="{y:.1f}"/>'
            f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick_us:g}</text>'
        )
        tick_us = round(tick_us + step_us, 9)
    kinds = sorted({entry.provenance.value for entry in population if entry.latency_us is not None})
    unit = f"us, {' and '.join(kinds)}" if kinds else "us"
    lines.append(f'<text x="{_LEFT}" y="{_TOP - 4}" text-anchor="start">{unit}</text>')
    lines.append(f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 8}" text-anchor="middle">candidate</text>')
    return lines


def _round_step(step_us: float) -> float:
    """Return the next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** floor(log10(step_us))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step_us)


def _best_line(scales: _Scales, population: Sequence[CandidateReport]) -> str:
    points: list[str] = []
    best_us: float | None = None
    for entry in population:
        if best_us is not None:
            points.append(f"{scales.x(entry.seq):.1f},{scales.y(best_us):.1f}")
        if entry.latency_us is not None and (best_us is None or entry.latency_us < best_us):
            best_us = entry.latency_us
            points.append(f"{scales.x(entry.seq):.1f},{scales.y(best_us):.1f}")
    return f'<polyline class="best" points="{" ".join(points)}"/>'


def _mark(scales: _Scales, entry: CandidateReport, is_winner: bool) -> str:
    x = scales.x(entry.seq)
    tune = ", ".join(f"{name}={value}" for name, value in entry.tune.items())
    if entry.latency_us is None:
        y = _HEIGHT - _BOTTOM
        title = f"#{entry.seq} {entry.status or 'not evaluated'} {tune}"
        shape = f"M{x - 4:.1f},{y - 4}l8,8m0,-8l-8,8"
        return f'<path class="failed" d="{shape}"><title>{escape(title)}</title></path>'
    y_us = scales.y(entry.latency_us)
    speedup = "" if entry.speedup is None else f" {entry.speedup:.3f}x"
    title = f"#{entry.seq} {entry.latency_us:.3f} us {entry.provenance}{speedup} {tune}"
    kind, radius = ("winner", 6) if is_winner else ("passed", 4)
    return (
        f'<circle class="{kind}" cx="{x:.1f}" cy="{y_us:.1f}" r="{radius}">'
        f"<title>{escape(title)}</title></circle>"
    )
