"""Text of anybody in Markdown: shown as it is, on one line, meaning nothing.

Nothing in it becomes a link, an image or markup, and no control character gets through.
"""

import re
from collections.abc import Iterator

from .sections import Table

_MEANS_SOMETHING = re.compile(r"([\\`*_{}\[\]<>|~#&!])")
# Hosts of repositories make links of addresses and notify whoever is named, escaped or not.
_LINKED = re.compile(r"(?<=:)(?=//)|(?<=@)(?=\w)|(?<=www)(?=\.)", re.IGNORECASE)


def table_lines(table: Table) -> Iterator[str]:
    """Yield a table; a column whose head ends with `#` stands at the right."""
    yield f"| {' | '.join(plain(head.rstrip('#')) for head in table.heads)} |"
    yield f"|{'|'.join('--:' if head.endswith('#') else '---' for head in table.heads)}|"
    for row in table.rows:
        yield f"| {' | '.join(plain(cell) for cell in row)} |"


def plain(text: str) -> str:
    """Return `text` on one line, with all that Markdown would act on escaped."""
    line = " ".join(text.split())
    printable = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line
    )
    return _LINKED.sub("<!-- -->", _MEANS_SOMETHING.sub(r"\\\1", printable))
