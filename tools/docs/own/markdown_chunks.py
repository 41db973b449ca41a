"""Markdown pages as sections and table entries.

A section goes from its heading to the next one. A table row whose first cell is code (a status, a
key, a header) is an entry of its own as well, put together with the names of its columns.
"""

import re
from dataclasses import dataclass, field
from importlib.resources import files

_HEADING = re.compile(r"(#{1,6})\s+(.*\S)\s*$")
_CODE_CELL = re.compile(r"(?:\.\.\.\s+)?`([^`]+)`(?:,\s*`[^`]+`)*")
_BAR = re.compile(r"(?<!\\)\|")
_LEAST_ENTRY = 40


@dataclass
class Section:
    """A heading with the text below it."""

    headings: tuple[str, ...]
    """Headings from the title of the page to this one."""
    start_line: int
    lines: list[str] = field(default_factory=list[str])

    @property
    def end_line(self) -> int:
        """The last line that is not blank."""
        return self.start_line + len(self.text.split("\n")) - 1

    @property
    def text(self) -> str:
        """Everything from the heading on, without blank lines at the end."""
        return "\n".join(self.lines).rstrip()


@dataclass(frozen=True)
class TableEntry:
    """A table row about one name."""

    name: str
    headings: tuple[str, ...]
    line: int
    text: str
    """`column: cell`, one a line."""


def sections(text: str) -> list[Section]:
    """Return the sections of a page in order; text above the first heading is one too."""
    found = [Section((), 1)]
    fenced = False
    for number, line in enumerate(text.split("\n"), start=1):
        fenced ^= line.lstrip().startswith("```")
        heading = None if fenced else _HEADING.match(line)
        if heading:
            above = found[-1].headings[: len(heading[1]) - 1]
            found.append(Section((*above, heading[2].replace("`", "")), number))
        found[-1].lines.append(line)
    return [section for section in found if section.text]


def entries(section: Section) -> list[TableEntry]:
    """Return the rows of the section's tables that are about one name."""
    found: list[TableEntry] = []
    columns: list[str] = []
    fenced = False
    for offset, line in enumerate(section.lines):
        fenced ^= line.lstrip().startswith("```")
        if fenced or not line.startswith("|"):
            columns = []
            continue
        cells = [cell.strip() for cell in _BAR.split(line.strip().strip("|"))]
        if not columns:
            columns = cells
        elif name := _CODE_CELL.fullmatch(cells[0]):
            text = _entry_text(columns, cells)
            if len(text) >= _LEAST_ENTRY:
                found.append(
                    TableEntry(name[1], section.headings, section.start_line + offset, text)
                )
    return found


def _entry_text(columns: list[str], cells: list[str]) -> str:
    named = [
        f"{column}: {cell}" if column else cell
        for column, cell in zip(columns, cells, strict=False)
        if cell
    ]
    return "\n".join(named)


def note_uid(family: str, heading: str) -> str:
    """Return the uid of a note, as `kopt docs show` takes it.

    Raises:
        LookupError: The family has no such note.
    """
    name = f"{family}.md"
    text = files("kopt.tools.docs").joinpath("notes", name).read_text("utf-8")
    for section in sections(text):
        if section.headings[1:] == (heading,):
            return f"notes:tools/docs/notes/{name}#{section.start_line}"
    raise LookupError(f"{name} has no note {heading!r}")
