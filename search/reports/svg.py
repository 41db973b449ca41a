"""The little SVG that the charts need: scales with round ticks, marks, escaped text.

Colors are classes of the page's style sheet, so that a chart follows the reader's dark mode. Marks
differ in shape as well as color.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10


@dataclass(frozen=True)
class Scale:
    """Values to pixels, linearly; `begin_px` belongs to `low`."""

    low: float
    high: float
    begin_px: float
    end_px: float

    def px(self, value: float) -> float:
        """Return where `value` lies."""
        part = (value - self.low) / ((self.high - self.low) or 1.0)
        return self.begin_px + part * (self.end_px - self.begin_px)

    def ticks(self) -> list[float]:
        """Return about five round numbers in the range."""
        step = round_step((self.high - self.low) / 4 or 1.0)
        first = ceil(self.low / step - 1e-9)
        return [round(n * step, 9) for n in range(first, floor(self.high / step + 1e-9) + 1)]


class LogScale(Scale):
    """Positive values to pixels, by their logarithm."""

    def px(self, value: float) -> float:
        """Return where `value` lies."""
        part = (log10(value) - log10(self.low)) / (log10(self.high) - log10(self.low))
        return self.begin_px + part * (self.end_px - self.begin_px)

    def ticks(self) -> list[float]:
        """Return the powers of ten in the range."""
        return [10.0**n for n in range(ceil(log10(self.low)), floor(log10(self.high)) + 1)]


def round_step(step: float) -> float:
    """Return the next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** floor(log10(step))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= step * (1 - 1e-9))


def figure(size: tuple[int, int], label: str, parts: Iterable[str]) -> str:
    """Return an SVG element; `label` says what it shows to who cannot see it.

    It is as large as it says, whatever stands around it: text of all charts has one size.
    """
    width, height = size
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' role="img" aria-label="{escape(label)}">'
        f"{''.join(parts)}</svg>"
    )


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Return escaped text; anchor: start, middle or end."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def line(kind: str, begin: tuple[float, float], end: tuple[float, float]) -> str:
    """Return a straight line of a class."""
    (x1, y1), (x2, y2) = begin, end
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def polyline(kind: str, points: Sequence[tuple[float, float]]) -> str:
    """Return a line through all points."""
    places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline class="{kind}" points="{places}"/>'


def mark(kind: str, place: tuple[float, float], title: str) -> str:
    """Return the mark of a candidate with a tooltip; the shape says as much as the color.

    Kinds: passed is a small disk, kept a large one, winner a ring; failed is a cross, open a dot.
    """
    x, y = place
    tooltip = f"<title>{escape(title)}</title>"
    if kind == "failed":
        shape = f"M{x - 4:.1f},{y - 4:.1f}l8,8m0,-8l-8,8"
        return f'<path class="failed" d="{shape}">{tooltip}</path>'
    radius = {"passed": 3.5, "kept": 5.5, "winner": 6.0, "open": 2.0}[kind]
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius}">{tooltip}</circle>'


def value_axis(scale: Scale, across: tuple[float, float], unit: str) -> list[str]:
    """Return horizontal grid lines, their values at the left, and the unit, if any, above."""
    left, right = across
    parts = [text(left, scale.end_px - 8, unit)] if unit else []
    for tick in scale.ticks():
        y = scale.px(tick)
        parts.append(line("grid", (left, y), (right, y)))
        parts.append(text(left - 6, y + 4, f"{tick:g}", "end"))
    return parts
