"""What every HTML report is made of: one self-contained page, tables, its data as JSON.

No library, no network, no script that runs. Sources and messages come from candidates and models,
so everything is escaped, and the page's own policy forbids all that it does not need.
"""

import base64
import hashlib
import json
from collections.abc import Iterable, Iterator
from html import escape

from kopt.kernels.record import Record

from .page_style import STYLE
from .sections import Table


def whole_page(title: str, body: Iterable[str]) -> str:
    """Return the page; `body` is escaped already."""
    digest = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'"
    return _visible(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>"
        f"<body>{''.join(body)}</body></html>\n"
    )


def json_element(name: str, record: Record) -> str:
    """Return an element that holds `record` for programs and shows nothing."""
    # In ASCII. Only "<" could end the element early; nothing else in it means anything to HTML.
    data = json.dumps(json.loads(record.model_dump_json(by_alias=True))).replace("<", "\\u003c")
    return f'<script type="application/json" id="{name}">{data}</script>'


def table_parts(table: Table) -> Iterator[str]:
    """Yield a table; a column whose head ends with `#` is of numbers."""
    kinds = [' class="number"' if head.endswith("#") else "" for head in table.heads]
    yield '<div class="scroll"><table><tr>'
    for head, kind in zip(table.heads, kinds, strict=True):
        yield f'<th scope="col"{kind}>{escape(head.rstrip("#"))}</th>'
    yield "</tr>"
    for row in table.rows:
        cells = zip(row, kinds, strict=True)
        yield f"<tr>{''.join(f'<td{kind}>{escape(cell)}</td>' for cell, kind in cells)}</tr>"
    yield "</table></div>"


def _visible(page: str) -> str:
    """Return `page` with marks for what a terminal obeys and for what turns the way of text."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t\xa0" else "\N{REPLACEMENT CHARACTER}"
        for letter in page
    )
