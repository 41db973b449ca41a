"""A run as one self-contained HTML page."""

from collections.abc import Iterator

from .contents import Contents
from .markup import json_element, whole_page
from .run_page import RunPage


def render_page(contents: Contents) -> str:
    """Return the page of one run."""
    return whole_page(contents.report.run, _body(contents))


def _body(contents: Contents) -> Iterator[str]:
    for name, part in RunPage(contents).parts():
        yield f'<section id="{name}">{part}</section>'
    yield json_element("run", contents.report)
