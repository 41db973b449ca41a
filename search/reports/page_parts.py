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

from .sections import Table

_STYLE = """
:root{color-scheme:light dark;--ink:#1b1f24;--paper:#fff;--faint:#6e7781;--rule:#d0d7de;
--mark:#0969da;--bad:#cf222e;--good:#1a7f37;--tint:#f6f8fa}
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--paper:#0d1117;--faint:#8b949e;
--rule:#30363d;--mark:#58a6ff;--bad:#ff7b72;--good:#3fb950;--tint:#161b22}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);
max-width:66rem;margin:2rem auto;padding:0 1rem}
h2{margin-top:2.2rem;border-bottom:1px solid var(--rule)}
.verdict{font-size:1.15rem;background:var(--tint);border-left:4px solid var(--mark);
padding:.6rem 1rem}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.9rem}
td,th{padding:.2rem .6rem;text-align:left;vertical-align:top;border-bottom:1px solid var(--rule)}
td.number,th.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
pre{overflow:auto;border:1px solid var(--rule);background:var(--tint);padding:1rem;
font-size:.82rem}
ins{color:var(--good);text-decoration:none}del{color:var(--bad);text-decoration:none}
.note{color:var(--faint);font-size:.9rem}
svg{display:block;max-width:none}svg text{font-size:12px;fill:var(--ink);
paint-order:stroke;stroke:var(--paper);stroke-width:3px}
.axis{stroke:var(--ink)}.grid,.edge{stroke:var(--rule)}.even{stroke:var(--faint);
stroke-dasharray:2 3}.spread{stroke:var(--ink)}.best{fill:none;stroke:var(--mark);
stroke-dasharray:5 3}.roof{fill:none;stroke:var(--ink);stroke-width:2}
.chosen{stroke:var(--mark);stroke-width:3}
.passed{fill:var(--paper);stroke:var(--mark)}.kept{fill:var(--mark)}
.winner{fill:var(--paper);stroke:var(--mark);stroke-width:4}
.failed{stroke:var(--bad);fill:none;stroke-width:1.5}.open{fill:var(--faint)}
"""
"""Light and dark as the reader has it; nothing is loaded."""


def whole_page(title: str, body: Iterable[str]) -> str:
    """Return the page; `body` is escaped already."""
    digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'"
    return _visible(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
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
