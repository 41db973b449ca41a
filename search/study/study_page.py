"""The report of a study as files in its folder: `study.md`, and `study.html` with two charts."""

from collections.abc import Iterator
from html import escape
from pathlib import Path

from kopt.config.errors import SetupError
from kopt.config.files import write_atomically
from kopt.search.reports.markdown import plain, table_lines
from kopt.search.reports.markup import json_element, table_element, whole_page
from kopt.search.reports.sections import Table
from kopt.search.reports.svg import Scale, figure, line, mark, polyline, text, value_axis

from .study_report import StudyReport
from .study_words import PLACES, facts, headlines, notes, run_table, sections, speed_words

_WIDTH, _HEIGHT = 860, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 16, 30, 40
_BASE = _HEIGHT - _BOTTOM


def arm_chart(report: StudyReport) -> str:
    """Return an SVG element: every run's speed, and each arm's mean with its interval."""
    names = [arm.arm for arm in report.arms]
    across = Scale(-0.5, len(names) - 0.5, _LEFT, _WIDTH - _RIGHT)
    runs = [(one.cell, one.outcome) for one in report.runs if one.outcome is not None]
    speeds = [outcome.speed for _, outcome in runs if outcome.speed is not None]
    up = Scale(0.0, max([*speeds, 1.0]) * 1.15, _BASE, _TOP)
    parts = [*value_axis(up, (_LEFT, _WIDTH - _RIGHT), speed_words(report)), _floor()]
    parts.append(line("even", (_LEFT, up.px(1.0)), (_WIDTH - _RIGHT, up.px(1.0))))
    for cell, outcome in runs:
        if outcome.speed is not None:
            place = (across.px(names.index(cell.arm)) - 24, up.px(outcome.speed))
            title = f"{cell.kernel}, repeat {cell.repeat + 1}: {outcome.speed:.3f}x"
            parts.append(mark("passed", place, title))
    for number, arm in enumerate(report.arms):
        x = across.px(number)
        parts.append(text(x, _BASE + 16, arm.arm, "middle"))
        if arm.speed.value is None:
            continue
        ends = arm.speed.interval
        if ends is not None and None not in ends:
            low, high = (up.px(end or 0.0) for end in ends)
            parts.append(line("spread", (x, low), (x, high)))
        parts.append(mark("kept", (x, up.px(arm.speed.value)), f"{arm.arm}: geometric mean"))
        parts.append(text(x + 12, up.px(arm.speed.value) + 4, f"{arm.speed.value:.3f}x"))
    label = f"Speed of every run and the mean of each arm: {speed_words(report)}"
    return figure((_WIDTH, _HEIGHT), label, parts)


def place_chart(report: StudyReport) -> str:
    """Return an SVG element: candidates to the target after so many kernels, a line for each arm.

    Runs that did not reach the target are crosses on the axis.
    """
    places = len(report.plan.kernels)
    across = Scale(-0.5, places - 0.5, _LEFT, _WIDTH - _RIGHT)
    medians = [one.median_candidates for one in report.places if one.median_candidates is not None]
    up = Scale(0.0, max([*medians, 1.0]) * 1.15, _BASE, _TOP)
    unit = f"median candidates to {report.plan.target_words}"
    parts = [*value_axis(up, (_LEFT, _WIDTH - _RIGHT), unit), _floor()]
    parts += [text(across.px(n), _BASE + 16, str(n), "middle") for n in range(places)]
    for arm in report.plan.arms:
        own = [one for one in report.places if one.arm == arm.name]
        points = [
            (across.px(one.place), up.px(one.median_candidates))
            for one in own
            if one.median_candidates is not None
        ]
        parts.append(polyline("best", points))
        parts += [mark("passed", point, arm.name) for point in points]
        parts += [
            mark("failed", (across.px(one.place), _BASE), f"{arm.name}: not reached by half")
            for one in own
            if one.median_candidates is None
        ]
        if points:
            parts.append(text(points[-1][0] + 8, points[-1][1] + 4, arm.name))
    parts.append(text(_WIDTH / 2, _HEIGHT - 6, "kernels that the base has seen before", "middle"))
    return figure((_WIDTH, _HEIGHT), f"{unit}, by the kernels that came before", parts)


def _floor() -> str:
    return line("axis", (_LEFT, _BASE), (_WIDTH - _RIGHT, _BASE))


def write_study(report: StudyReport) -> tuple[Path, Path]:
    """Write both files of the study, over older ones; return page and Markdown.

    Raises:
        SetupError: The folder cannot be written.
    """
    folder = Path(report.folder)
    page, markdown = folder / "study.html", folder / "study.md"
    for path, shown in ((page, study_page(report)), (markdown, study_markdown(report))):
        try:
            write_atomically(path, shown.encode())
        except OSError as error:
            raise SetupError(f"cannot write {path}: {error.strerror}") from error
    return page, markdown


def study_page(report: StudyReport) -> str:
    """Return the study as one self-contained HTML page."""
    return whole_page(report.study, _body(report))


def study_markdown(report: StudyReport) -> str:
    """Return the study as Markdown."""
    return "\n".join(_lines(report)) + "\n"


def _sections(report: StudyReport) -> Iterator[tuple[str, Table]]:
    yield from sections(report)
    yield "Runs", run_table(report)


def _body(report: StudyReport) -> Iterator[str]:
    yield f"<h1>{escape(report.study)}</h1>"
    for words in headlines(report):
        yield f'<p class="verdict">{escape(words)}</p>'
    yield "<table>"
    for name, value in facts(report):
        yield f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
    yield "</table>"
    charts = {"Speed": arm_chart(report), PLACES: place_chart(report)}
    for title, table in _sections(report):
        yield f"<h2>{escape(title)}</h2>"
        if title in charts:
            yield f'<div class="scroll">{charts[title]}</div>'
        yield table_element(table)
    yield "<h2>How to read it</h2><ul>"
    yield from (f"<li>{escape(note)}</li>" for note in notes(report))
    yield "</ul>"
    yield json_element("study", report)


def _lines(report: StudyReport) -> Iterator[str]:
    yield from (f"# {plain(report.study)}", "")
    yield from (f"- {plain(line)}" for line in headlines(report))
    yield ""
    yield from table_lines(Table(("", ""), tuple(facts(report))))
    for title, table in _sections(report):
        yield from ("", f"## {plain(title)}", "")
        yield from table_lines(table)
    yield from ("", "## How to read it", "")
    yield from (f"- {plain(note)}" for note in notes(report))
