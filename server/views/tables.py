"""The parts of all views: tables, Markdown tables, and cells of numbers."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from rich.console import (
    Console,
    ConsoleOptions,
    Group,
    OverflowMethod,
    RenderableType,
    RenderResult,
)
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

View = Iterator[RenderableType]
"""A result for people: its parts, made when they are printed."""
Cell = str | Text

NOTHING = "-"
"""The cell of a value that there is none of."""
_ANY_WIDTH = 10_000
_INDENT = 2
_GAP = 2
"""Blanks between two columns."""


@dataclass(frozen=True)
class WorkStep:
    """The progress of work in steps."""

    words: str
    """What is being done."""
    amount: str
    """How much of it is done, as it stands beside the bar."""
    line: str
    """The line where there is no terminal, printed once; empty for none."""
    done: int
    total: int | None
    """How much there is to do; None while that is not known."""


class ResponsiveTable(Table):
    """A table that a narrow terminal shows as a list, since a cut id is no id."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table where each column has room for its longest word, else the list."""
        needs = [self._need(console, options, column) for column in self.columns]
        room = options.max_width - _GAP * (len(needs) - 1)
        if sum(one.minimum for one in needs) > room:
            yield from self._as_list(options.max_width)
            return
        if sum(one.maximum for one in needs) > room:  # rich alone would cut words
            for column, width in zip(self.columns, _widths(needs, room), strict=True):
                column.width = width
        yield from super().__rich_console__(console, options)

    def _need(self, console: Console, options: ConsoleOptions, column: Column) -> Measurement:
        """Return the width of a column's longest word, and of its longest cell."""
        wide = options.update_width(_ANY_WIDTH)
        found = [Measurement.get(console, wide, cell) for cell in (column.header, *column.cells)]
        most = max(one.maximum for one in found)
        least = most if column.no_wrap else max(one.minimum for one in found)
        return Measurement(least, most)

    def _as_list(self, width: int) -> RenderResult:
        """Give each row as its first cell, and the others below it, each behind its head.

        A first cell that is a number alone says nothing without its head.
        """
        heads = [str(column.header) for column in self.columns]
        for row in zip(*(column.cells for column in self.columns), strict=True):
            first, *rest = (cell if isinstance(cell, Text) else Text(str(cell)) for cell in row)
            named = (f"{heads[0]} ", first) if first.plain.isdigit() else (first,)
            yield Text.assemble(*named, style="bold", overflow="fold")
            told = [(head, cell) for head, cell in zip(heads[1:], rest, strict=True) if cell.plain]
            parts = [
                Text.assemble((f"{head} ", "dim"), cell, overflow="fold") for head, cell in told
            ]
            yield Padding(Group(*_filled(parts, width - _INDENT)), (0, 0, 0, _INDENT))


def _widths(needs: Sequence[Measurement], room: int) -> list[int]:
    """Return widths that fill `room`: those of words, and what is left where it lacks least."""
    widths = [one.minimum for one in needs]
    left = room - sum(widths)
    by_lack = sorted(range(len(needs)), key=lambda place: needs[place].span)
    for after, place in enumerate(by_lack):
        more = min(needs[place].span, left // (len(needs) - after))
        widths[place] += more
        left -= more
    return widths


def _filled(parts: Iterable[Text], width: int) -> Iterator[Text]:
    """Yield lines of as many parts as fit; a line ends between parts, not within one."""
    line: Text | None = None
    for part in parts:
        longer = part if line is None else Text("   ", overflow="fold").join((line, part))
        if line is not None and longer.cell_len > width:
            yield line
            longer = part
        line = longer
    if line is not None:
        yield line


@dataclass(frozen=True)
class WideOrNarrow:
    """A result in two forms: a terminal with fewer columns than `width` gets the narrow one."""

    width: int
    wide: Sequence[RenderableType]
    narrow: Sequence[RenderableType]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the form that fits; a pipe has room for any width."""
        is_narrow = console.is_terminal and self.width > options.max_width
        yield from self.narrow if is_narrow else self.wide


def grid(
    *heads: str,
    rows: Iterable[Iterable[Cell]] = (),
    whole: Collection[str] = (),
    header_style: str = "bold",
    overflow: OverflowMethod = "ellipsis",
) -> Table:
    """Return a table without lines, which a terminal that is too narrow shows as a list.

    Args:
        heads: The columns; one whose head ends with `#` is of numbers, which stand to the right.
        rows: The cells of each row.
        whole: Heads of columns that are never wrapped, with or without `#`.
        header_style: Of the heads.
        overflow: What becomes of a word that is longer than its column.
    """
    table = ResponsiveTable(box=None, pad_edge=False, header_style=header_style)
    for head in heads:
        name = head.rstrip("#")
        table.add_column(
            name,
            justify="right" if head.endswith("#") else "left",
            no_wrap=head in whole or name in whole,
            overflow=overflow,
        )
    for row in rows:
        table.add_row(*row)
    return table


def markdown_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table as Markdown; heads as `grid` takes them."""
    names = [head.rstrip("#") for head in heads]
    rules = ["---:" if head.endswith("#") else "---" for head in heads]
    lines = (names, rules, *rows)
    return "\n".join(f"| {' | '.join(map(markdown_cell, line))} |" for line in lines)


def markdown_cell(text: str) -> str:
    """Return `text` so that it stays one cell: names and reasons come from elsewhere."""
    return " ".join(text.replace("|", "\\|").split())


def ratio_cell(ratio: float | None) -> str:
    """Return 1.2345 as `1.235x`."""
    return NOTHING if ratio is None else f"{ratio:.3f}x"


def interval_cell(interval: tuple[float, float] | None, digits: int = 3) -> str:
    """Return an interval as `1.200 to 1.220`."""
    return NOTHING if interval is None else f"{interval[0]:.{digits}f} to {interval[1]:.{digits}f}"


def us_cell(time_us: float | None) -> str:
    """Return a time in microseconds as `1.234`."""
    return NOTHING if time_us is None else f"{time_us:.3f}"


def count_cell(count: int | None) -> str:
    """Return 12000 as `12,000`."""
    return NOTHING if count is None else f"{count:,}"


def percent_cell(fraction: float | None) -> str:
    """Return 0.25 as `25%`."""
    return NOTHING if fraction is None else f"{fraction:.0%}"


def words_cell(name: str | None) -> str:
    """Return `not_like_for_like` as words."""
    return NOTHING if name is None else name.replace("_", " ")
