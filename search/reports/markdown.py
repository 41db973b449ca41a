"""A run as Markdown: what the page shows, for readers of text and for pull requests.

Whatever comes from candidates and models is shown as it is: nothing in it becomes a link, an image
or markup, and no control character gets through.
"""

import re
from collections.abc import Iterator

from .contents import Contents
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

_MEANS_SOMETHING = re.compile(r"([\\`*_{}\[\]<>|~#&!])")
# Hosts of repositories make links of addresses and notify whoever is named, escaped or not.
_LINKED = re.compile(r"(?<=:)(?=//)|(?<=@)(?=\w)|(?<=www)(?=\.)", re.IGNORECASE)


def render_markdown(contents: Contents) -> str:
    """Return the report of one run."""
    return "\n".join(_lines(contents)) + "\n"


def _lines(contents: Contents) -> Iterator[str]:
    report = contents.report
    yield from (f"# {_plain(report.kernel)}", "", _plain(verdict(report)), "")
    yield from _table(Table(("", ""), tuple(facts(report))))
    yield from ("", "## Rounds", "")
    yield from _table(round_table(report))
    yield from ("", "## Families", "")
    yield from _table(family_table(report))
    yield from ("", "## Candidates", "")
    yield from _table(candidate_table(report))
    if report.lost:
        yield from ("", "## Hypotheses that led to nothing", "")
        yield from _table(lost_table(report))
    if report.lessons:
        yield from ("", "## What the rounds taught", "")
        yield from (f"- {_plain(line)}" for line in lesson_lines(report))
    yield from ("", "## Roofline", "", _roofline(contents), "", "## Cost", "")
    summary = worth(report)
    yield _plain(summary) if summary else "No model was asked: this run cost no tokens."
    if summary:
        yield ""
        yield from _table(cost_table(report))
    if report.winner_path is not None:
        yield from ("", f"Winner: {_plain(report.winner_path)}")


def _roofline(contents: Contents) -> str:
    if contents.roof is None:
        return f"Unavailable: {_plain(contents.roof_missing)}"
    line = contents.roof.line
    return _plain(
        f"Floor {line.floor_us:.3f} us on {line.gpu} (computed): memory"
        f" {line.memory_floor_us:.3f} us, fp32 {line.compute_floor_us:.3f} us, an empty kernel"
        f" {line.null_kernel_us:.3f} us."
    )


def _table(table: Table) -> Iterator[str]:
    yield f"| {' | '.join(_plain(head.rstrip('#')) for head in table.heads)} |"
    yield f"|{'|'.join('--:' if head.endswith('#') else '---' for head in table.heads)}|"
    for row in table.rows:
        yield f"| {' | '.join(_plain(cell) for cell in row)} |"


def _plain(text: str) -> str:
    """Return `text` on one line, with all that Markdown would act on escaped."""
    line = " ".join(text.split())
    printable = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in line
    )
    return _LINKED.sub("<!-- -->", _MEANS_SOMETHING.sub(r"\\\1", printable))
