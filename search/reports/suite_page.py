"""The score of a suite as one self-contained HTML page, with the curve of fast_p."""

from collections.abc import Iterator, Sequence
from html import escape

from kopt.tools.suite.suite_score import SuiteScore

from .markup import json_element, table_element, whole_page
from .suite_words import facts, headline, notes, score_table, task_table
from .svg import Scale, figure, line, polyline, text, value_axis

_WIDTH, _HEIGHT = 860, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 16, 30, 44
_BASE = _HEIGHT - _BOTTOM
_LEAST_WIDTH, _MOST_WIDTH = 2.5, 10.0
"""The largest p that is shown, at least and at most."""


def suite_page(score: SuiteScore) -> str:
    """Return the page."""
    return whole_page(score.suite, _body(score))


def _body(score: SuiteScore) -> Iterator[str]:
    yield f"<h1>{escape(score.suite)}</h1>"
    yield f'<p class="verdict">{escape(headline(score))}</p>'
    yield '<table class="facts">'
    for name, value in facts(score):
        yield f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
    yield "</table><h2>Scores</h2>"
    yield f'<div class="scroll">{table_element(score_table(score))}</div>'
    if score.curve:
        yield "<h2>fast_p by p</h2>"
        yield f'<div class="scroll">{fast_chart(score)}</div>'
    yield "<h2>Tasks</h2>"
    yield f'<div class="scroll">{table_element(task_table(score))}</div>'
    yield "<h2>How to read it</h2><ul>"
    yield from (f"<li>{escape(note)}</li>" for note in notes(score))
    yield "</ul>"
    yield json_element("suite", score)


def fast_chart(score: SuiteScore) -> str:
    """Return an SVG element: the share of all tasks that are faster than p times the baseline."""
    highest = max(point.p for point in score.curve)
    end = min(max(highest * 1.05, _LEAST_WIDTH), _MOST_WIDTH)
    across = Scale(0.0, end, _LEFT, _WIDTH - _RIGHT)
    up = Scale(0.0, 1.0, _BASE, _TOP)
    parts = value_axis(up, (_LEFT, _WIDTH - _RIGHT), "share of all tasks")
    parts.append(line("axis", (_LEFT, _BASE), (_WIDTH - _RIGHT, _BASE)))
    parts.append(line("even", (across.px(1.0), _TOP), (across.px(1.0), _BASE)))
    for tick in across.ticks():
        parts.append(text(across.px(tick), _BASE + 16, f"{tick:g}x", "middle"))
    by_estimate = [(one.p, one.by_estimate) for one in score.curve]
    by_interval = [(one.p, one.by_interval) for one in score.curve if one.by_interval is not None]
    for kind, steps in (("best", by_estimate), ("roof", by_interval)):
        if steps:
            points = [(across.px(min(p, end)), up.px(part)) for p, part in stairs(steps)]
            parts.append(polyline(kind, points))
    words = f"p: faster than p times {score.over}. Dashed: by the speedup"
    if by_interval:
        words += "; solid: by the lower end of its 95 % interval"
    if highest > end:
        words += f". Speedups above {end:g}x lie beyond the right edge"
    parts.append(text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 6, words, "middle"))
    return figure((_WIDTH, _HEIGHT), f"fast_p by p, over {score.over}", parts)


def stairs(steps: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the corners of a falling step function whose value up to each p is given."""
    corners = [(0.0, steps[0][1])]
    for place, (p, part) in enumerate(steps):
        after = steps[place + 1][1] if place + 1 < len(steps) else 0.0
        corners += [(p, part), (p, after)]
    return corners
