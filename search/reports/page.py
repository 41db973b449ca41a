"""A run as one self-contained HTML page: what `sections.py` says of it, with charts."""

from collections.abc import Iterable, Iterator
from difflib import unified_diff
from html import escape

from .charts import candidate_chart, roofline_chart, round_chart, tree_chart
from .contents import Contents
from .memory_words import calibration_table, change_lines, memory_table
from .page_parts import json_element, table_parts, whole_page
from .sections import (
    candidate_table,
    cost_table,
    facts,
    family_table,
    lesson_lines,
    lost_table,
    round_table,
    verdict,
    worth,
)

_STEPS = (
    "Speed after a step over the speed before it. A prediction is of steps that have an effect; a"
    " result within noise teaches no gain."
)
_MARKS = (
    "Disk: kept in the beam. Small circle: passed. Ring: winner. Cross: failed. Dot: not evaluated."
    " Vertical bars are 95 % intervals."
)


def render_page(contents: Contents) -> str:
    """Return the page of one run."""
    return whole_page(contents.report.run, _body(contents))


def _body(contents: Contents) -> Iterator[str]:
    report = contents.report
    yield f'<h1>{escape(report.kernel)}</h1><p class="verdict">{escape(verdict(report))}</p>'
    yield "<table>"
    for name, value in facts(report):
        yield f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
    yield "</table><h2>Rounds</h2>"
    yield round_chart(report)
    yield from table_parts(round_table(report))
    yield f'<h2>Candidates</h2><p class="note">{_MARKS}</p>'
    yield candidate_chart(report)
    yield f'<h3>Tree</h3><div class="scroll">{tree_chart(report)}</div><h3>Families</h3>'
    yield from table_parts(family_table(report))
    yield "<h3>All</h3>"
    yield from table_parts(candidate_table(report))
    yield from _lessons(contents)
    yield from _memory(contents)
    yield "<h2>Roofline</h2>"
    yield _roofline(contents)
    yield "<h2>Cost</h2>"
    yield from _cost(contents)
    yield from _winner(contents)
    yield json_element("run", report)


def _lessons(contents: Contents) -> Iterator[str]:
    if contents.report.lost:
        yield "<h2>Hypotheses that led to nothing</h2>"
        yield from table_parts(lost_table(contents.report))
    if contents.report.lessons:
        yield "<h2>What the rounds taught</h2><ul>"
        yield from (f"<li>{escape(line)}</li>" for line in lesson_lines(contents.report))
        yield "</ul>"


def _memory(contents: Contents) -> Iterator[str]:
    use = contents.report.memory
    if use is None:
        return
    yield f'<h2>Memory</h2><p class="note">{_STEPS}</p>'
    yield from table_parts(memory_table(use))
    if use.calibration:
        yield "<h3>Predicted against found</h3>"
        yield from table_parts(calibration_table(use))
    yield "<ul>"
    yield from (f"<li>{escape(line)}</li>" for line in change_lines(use))
    yield "</ul>"


def _roofline(contents: Contents) -> str:
    if contents.roof is None:
        return f"<p>Unavailable: {escape(contents.roof_missing)}</p>"
    line = contents.roof.line
    words = (
        f"{contents.roof.model.total_bytes:,} bytes and {contents.roof.model.flop:,} operations"
        f" a call, computed: no candidate takes less than {line.floor_us:.3f} us on {line.gpu}"
        f" ({'launch' if line.is_launch_dominated else line.bound} bound)."
    )
    chart = roofline_chart(contents.report, contents.roof.model, line)
    return f"<p>{escape(words)}</p>{chart or ''}"


def _cost(contents: Contents) -> Iterable[str]:
    summary = worth(contents.report)
    if not summary:
        return ["<p>No model was asked: this run cost no tokens.</p>"]
    return [f"<p>{escape(summary)}</p>", *table_parts(cost_table(contents.report))]


def _winner(contents: Contents) -> Iterator[str]:
    if contents.winner_source is None:
        return
    yield "<h2>Winner</h2><h3>Changes from the start</h3><pre>"
    before, after = contents.start_source.splitlines(), contents.winner_source.splitlines()
    tags = {"+": "ins", "-": "del"}
    for line in unified_diff(before, after, "start", "winner", lineterm=""):
        tag = tags.get(line[:1])
        text = escape(line)
        yield f"<{tag}>{text}</{tag}>\n" if tag else f"{text}\n"
    yield f"</pre><h3>Source</h3><pre>{escape(contents.winner_source)}</pre>"
