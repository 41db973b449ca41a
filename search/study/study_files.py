"""The report of a study as files in its folder: `study.md` and `study.html`."""

from collections.abc import Iterator
from html import escape
from pathlib import Path

from kopt.config.errors import SetupError
from kopt.config.files import write_atomically
from kopt.search.reports.markdown import plain, table_lines
from kopt.search.reports.page_parts import json_element, table_parts, whole_page
from kopt.search.reports.sections import Table

from .study_charts import arm_chart, place_chart
from .study_report import StudyReport
from .study_words import PLACES, facts, headlines, notes, run_table, sections


def write_study(report: StudyReport) -> tuple[Path, Path]:
    """Write both files of the study, over older ones; return page and Markdown.

    Raises:
        SetupError: The folder cannot be written.
    """
    folder = Path(report.folder)
    page, markdown = folder / "study.html", folder / "study.md"
    for path, text in ((page, study_page(report)), (markdown, study_markdown(report))):
        try:
            write_atomically(path, text.encode())
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
    for line in headlines(report):
        yield f'<p class="verdict">{escape(line)}</p>'
    yield "<table>"
    for name, value in facts(report):
        yield f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
    yield "</table>"
    charts = {"Speed": arm_chart(report), PLACES: place_chart(report)}
    for title, table in _sections(report):
        yield f"<h2>{escape(title)}</h2>"
        yield charts.get(title, "")
        yield from table_parts(table)
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
