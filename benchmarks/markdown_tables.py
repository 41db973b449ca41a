"""What the scripts here share when they print: Markdown grids, and their place in a document."""

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

FEW_ROWS = 128
"""Workloads up to here are the latency-bound class, those above the bandwidth-bound one."""


class Workload(Protocol):
    """What has a number of rows."""

    @property
    def rows(self) -> int:
        """Rows of the workload."""
        ...


Row = TypeVar("Row", bound=Workload)


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]], texts: Sequence[str]) -> str:
    """Return a Markdown table; the columns in `texts` are set left, all others right."""
    rules = ["---" if column in texts else "---:" for column in columns]
    lines = [columns, rules, *rows]
    return "\n".join(f"| {' | '.join(_escape(cell) for cell in line)} |" for line in lines)


def classes(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield the classes that have rows, each with its name."""
    few = [row for row in rows if row.rows <= FEW_ROWS]
    many = [row for row in rows if row.rows > FEW_ROWS]
    for name, some in ((f"up to {FEW_ROWS} rows", few), (f"above {FEW_ROWS} rows", many)):
        if some:
            yield name, some


def insert_between(document: str, marks: tuple[str, str], text: str) -> str:
    """Return `document` with `text`, which ends with a line break, between two lines of its own.

    Raises:
        ValueError: It does not have both lines once, in their order.
    """
    begin, end = marks
    before, first, rest = document.partition(f"{begin}\n")
    _, second, after = rest.partition(end)
    if not first or not second or begin in after or end in before + after:
        raise ValueError(f"put these two lines where the tables belong, once:\n{begin}\n{end}")
    return f"{before}{begin}\n{text}{end}{after}"


def _escape(cell: str) -> str:
    return " ".join(cell.replace("|", "\\|").split())
