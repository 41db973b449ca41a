"""Plots of the studies as SVG files that stand alone and follow the reader's dark mode."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log2

from learning_studies import Mean

from kopt.search.reports.svg import Scale, figure, line, polyline, text, value_axis

_WIDTH, _HEIGHT = 720, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 180, 34, 44
_STYLE = """<style>
svg{background:#fff;font:12px system-ui,sans-serif}text{fill:#1b1f24}
polyline{fill:none}polyline,line{stroke-width:1.5}.grid{stroke:#d0d7de}.axis{stroke:#1b1f24}
.a{stroke:#6e7781;stroke-dasharray:2 3}.b{stroke:#bf8700;stroke-dasharray:7 3}
.c{stroke:#0969da}.d{stroke:#1a7f37}.e{stroke:#cf222e;stroke-dasharray:9 3 2 3}
@media(prefers-color-scheme:dark){svg{background:#0d1117}text{fill:#e6edf3}.grid{stroke:#30363d}
.axis{stroke:#e6edf3}.a{stroke:#8b949e}.b{stroke:#d29922}.c{stroke:#58a6ff}.d{stroke:#3fb950}
.e{stroke:#ff7b72}}
</style>"""
_KINDS = ("a", "b", "c", "d", "e")  # lines differ in dashes as well as color


@dataclass(frozen=True)
class Plot:
    """What a plot shows."""

    title: str
    up: str
    """The values, with their unit."""
    across: str
    """The places, with their unit."""
    is_doubling: bool = False
    """Whether places double from one to the next; place 0 then stands before 1."""


def lines_plot(plot: Plot, lines: Mapping[str, Mapping[int, Mean]]) -> str:
    """Return an SVG document with a line and the intervals of its points for each name."""
    places = sorted({place for points in lines.values() for place in points})
    highest = max(mean.high for points in lines.values() for mean in points.values())
    right = _WIDTH - _RIGHT
    up = Scale(0.0, highest, _HEIGHT - _BOTTOM, _TOP)
    steps = [_step(plot, place) for place in places]
    across = Scale(min(steps), max(steps), _LEFT + 10, right - 10)
    parts = [_STYLE, *value_axis(up, (_LEFT, right), plot.up)]
    parts.append(line("axis", (_LEFT, up.px(0)), (right, up.px(0))))
    parts += [
        text(across.px(step), up.px(0) + 16, f"{place}", "middle")
        for step, place in zip(steps, places, strict=True)
    ]
    parts.append(text((_LEFT + right) / 2, up.px(0) + 34, plot.across, "middle"))
    ends: list[tuple[float, str, str]] = []
    for kind, (name, points) in zip(_KINDS, lines.items(), strict=False):
        shown = [(across.px(_step(plot, place)), mean) for place, mean in sorted(points.items())]
        parts.append(polyline(kind, [(x, up.px(mean.value)) for x, mean in shown]))
        parts += [line(kind, (x, up.px(mean.low)), (x, up.px(mean.high))) for x, mean in shown]
        ends.append((up.px(shown[-1][1].value) + 4, kind, name))
    for y, kind, name in _apart(ends):
        parts += [line(kind, (right, y - 4), (right + 20, y - 4)), text(right + 24, y, name)]
    svg = figure((_WIDTH, _HEIGHT), plot.title, parts)
    return svg.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"


def _step(plot: Plot, place: int) -> float:
    return log2(place) + 1 if plot.is_doubling and place else float(place)


def _apart(labels: Sequence[tuple[float, str, str]]) -> list[tuple[float, str, str]]:
    """Return the labels from top to bottom, none over another."""
    placed: list[tuple[float, str, str]] = []
    for y, kind, name in sorted(labels):
        placed.append((max(y, placed[-1][0] + 14) if placed else y, kind, name))
    return placed
