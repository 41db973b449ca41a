"""What every HTML report is made of: templates that escape, one self-contained page, its data.

No network, no script that runs. Sources and messages come from candidates and models, so Jinja
escapes whatever is put into a template, and the page's own policy forbids all that it does not
need.
"""

import base64
import hashlib
import json
from collections.abc import Iterable
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kopt.kernels.record import Record

from .sections import Table


@cache
def templates() -> Environment:
    """Return the templates of the reports; a name that was not given is an error."""
    return Environment(
        loader=PackageLoader("kopt.search.reports"),
        undefined=StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def macro(template: str, name: str, *words: object) -> Markup:
    """Return what the macro `name` of a template makes of `words`."""
    made = getattr(templates().get_template(template).module, name)(*words)
    return Markup(visible(str(made)))


@cache
def style_sheet() -> str:
    """Return the style of all pages: light and dark as the reader has it, a phone's width too."""
    return templates().get_template("page.css").render()


def whole_page(title: str, body: Iterable[str]) -> str:
    """Return a page that loads nothing; `body` is escaped already."""
    style = style_sheet()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return visible(
        templates()
        .get_template("page.html")
        .render(
            policy=f"default-src 'none'; style-src 'sha256-{digest}'",
            title=title,
            style=Markup(style),
            body=Markup("".join(body)),
        )
    )


def json_element(name: str, record: Record) -> Markup:
    """Return an element that holds `record` for programs and shows nothing."""
    # In ASCII. Only "<" could end the element early; nothing else in it means anything to HTML.
    data = json.dumps(json.loads(record.model_dump_json(by_alias=True))).replace("<", "\\u003c")
    return Markup(f'<script type="application/json" id="{name}">{data}</script>')


def table_element(table: Table) -> Markup:
    """Return a table; a column whose head ends with `#` is of numbers."""
    return macro("tables.html", "table", table)


def visible(page: str) -> str:
    """Return `page` with marks for what a terminal obeys and for what turns the way of text."""
    return "".join(
        letter if letter.isprintable() or letter in "\n\t\xa0" else "\N{REPLACEMENT CHARACTER}"
        for letter in page
    )
