"""A run as Markdown: what the page shows, for readers of text and for pull requests.

Texts of candidates and models are shown as they are: nothing in them becomes a link, an image or
markup, and no control character gets through.
"""

import re
from collections.abc import Iterator

from .candidate_rows import candidate_table
from .contents import Contents
from .memory_words import calibration_table, change_lines, memory_table
from .next_steps import next_commands
from .sections import (
    Table,
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
# Hosts of repositories make links of addresses and notify the users named, escaped or not.
_LINKED = re.compile(r"(?<=:)(?=//)|(?<=@)(?=\w)|(?<=www)(?=\.)", re.IGNORECASE)


def render_markdown(contents: Contents) -> str:
    """Return the report of one run."""
    return "\n".join(_lines(contents)) + "\n"


def _lines(contents: Contents) -> Iterator[str]:
    report = contents.report
    yield from (f"# {plain(report.kernel)}", "", plain(verdict(report)), "")
    yield from table_lines(Table(("", ""), tuple(facts(report))))
    yield from _next(contents)
    yield from ("", "## Rounds", "")
    yield from table_lines(round_table(report))
    yield from ("", "## Families", "")
    yield from table_lines(family_table(report))
    yield from ("", "## Candidates", "")
    yield from table_lines(candidate_table(report))
    if report.lost:
        yield from ("", "## Hypotheses that led to nothing", "")
        yield from table_lines(lost_table(report))
    if report.lessons:
        yield from ("", "## What the rounds taught", "")
        yield from (f"- {plain(line)}" for line in lesson_lines(report))
    if report.memory is not None:
        yield from ("", "## Memory", "")
        yield from table_lines(memory_table(report.memory))
        if report.memory.calibration:
            yield from ("", "Predicted against found:", "")
            yield from table_lines(calibration_table(report.memory))
        yield ""
        yield from (f"- {plain(line)}" for line in change_lines(report.memory))
    yield from ("", "## Roofline", "", _roofline(contents), "", "## Cost", "")
    summary = worth(report)
    yield plain(summary) if summary else "No model was asked: this run cost no tokens."
    if summary:
        yield ""
        yield from table_lines(cost_table(report))
    if report.winner_path is not None:
        yield from ("", f"Winner: {plain(report.winner_path)}")


def _next(contents: Contents) -> Iterator[str]:
    found = next_commands(contents.report)
    if found:
        yield from ("", "## Next", "")
    for one in found:
        yield from (f"- {plain(one.why)}:", "", f"      {' '.join(one.shell.split())}", "")


def _roofline(contents: Contents) -> str:
    if contents.roof is None:
        return f"Unavailable: {plain(contents.roof_missing)}"
    line = contents.roof.line
    return plain(
        f"Floor {line.floor_us:.3f} us on {line.gpu} (computed): memory"
        f" {line.memory_floor_us:.3f} us, operations {line.compute_floor_us:.3f} us, an empty"
        f" kernel {line.null_kernel_us:.3f} us."
    )


def table_lines(table: Table) -> Iterator[str]:
    """Yield a table; a column whose head ends with `#` stands at the right."""
    if table.caption:
        yield from (plain(table.caption), "")
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
