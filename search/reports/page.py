"""A run as one self-contained HTML page: no library, no network, no script that runs.

Sources and messages in it come from candidates and models, so everything is escaped, and the
page's own policy forbids all that it does not need. The same data stand in it as JSON for programs.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from difflib import unified_diff
from html import escape

from .candidate_chart import candidate_chart, round_chart
from .contents import Contents
from .page_style import STYLE
from .roofline_chart import roofline_chart
from .sections import (
    Table,
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
from .tree_chart import tree_chart

_MARKS = (
    "Disk: kept in the beam. Small circle: passed. Ring: winner. Cross: failed. Dot: not evaluated."
    " Vertical bars are 95 % intervals."
)


def render_page(contents: Contents) -> str:
    """Return the page of one run."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'"
    return _visible(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(contents.report.run)}</title><style>{STYLE}</style></head>"
        f"<body>{''.join(_body(contents))}</body></html>\n"
    )


def _body(contents: Contents) -> Iterator[str]:
    report = contents.report
    yield f'<h1>{escape(report.kernel)}</h1><p class="verdict">{escape(verdict(report))}</p>'
    yield "<table>"
    for name, value in facts(report):
        yield f'<tr><th scope="row">{escape(name)}</th><td>{escape(value)}</td></tr>'
    yield "</table><h2>Rounds</h2>"
    yield round_chart(report)
    yield from _table(round_table(report))
    yield f'<h2>Candidates</h2><p class="note">{_MARKS}</p>'
    yield candidate_chart(report)
    yield f'<h3>Tree</h3><div class="scroll">{tree_chart(report)}</div><h3>Families</h3>'
    yield from _table(family_table(report))
    yield "<h3>All</h3>"
    yield from _table(candidate_table(report))
    yield from _lessons(contents)
    yield "<h2>Roofline</h2>"
    yield _roofline(contents)
    yield "<h2>Cost</h2>"
    yield from _cost(contents)
    yield from _winner(contents)
    # In ASCII. Only "<" could end the element early; nothing else in it means anything to HTML.
    data = json.dumps(json.loads(report.model_dump_json(by_alias=True))).replace("<", "\\u003c")
    yield f'<script type="application/json" id="run">{data}</script>'


def _visible(page: str) -> str:
    """Return `page` with marks for what a terminal obeys and for what turns the way of text."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t\xa0" else "\N{REPLACEMENT CHARACTER}"
        for letter in page
    )


def _table(table: Table) -> Iterator[str]:
    kinds = [' class="number"' if head.endswith("#") else "" for head in table.heads]
    yield '<div class="scroll"><table><tr>'
    for head, kind in zip(table.heads, kinds, strict=True):
        yield f'<th scope="col"{kind}>{escape(head.rstrip("#"))}</th>'
    yield "</tr>"
    for row in table.rows:
        cells = zip(row, kinds, strict=True)
        yield f"<tr>{''.join(f'<td{kind}>{escape(cell)}</td>' for cell, kind in cells)}</tr>"
    yield "</table></div>"


def _lessons(contents: Contents) -> Iterator[str]:
    if contents.report.lost:
        yield "<h2>Hypotheses that led to nothing</h2>"
        yield from _table(lost_table(contents.report))
    if contents.report.lessons:
        yield "<h2>What the rounds taught</h2><ul>"
        yield from (f"<li>{escape(line)}</li>" for line in lesson_lines(contents.report))
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
    return [f"<p>{escape(summary)}</p>", *_table(cost_table(contents.report))]


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
