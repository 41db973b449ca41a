"""Reads what compute-sanitizer writes: records, each with its message, place, thread and block.

The text is read, not the XML that `--xml` offers: the text of every kind of record is documented,
while the XML is documented as a list of suppressions only. Few forms are relied on: a record begins
with an unindented line, `at FUNCTION+OFFSET in FILE:LINE` says where, `by thread (x,y,z) in block
(x,y,z)` says who, and a summary line comes last. Without a summary the tool did not finish.

Source: NVIDIA, Compute Sanitizer User Manual, 2025.3 to 2026.5.
"""

import re
from dataclasses import dataclass

PREFIX = "========="

_PLACE = re.compile(
    r"^(?:.* (?:access|Thread \([\d,]+\)) )?at (?P<function>.+?)\+0x[0-9a-f]+"
    r"(?: in (?P<file>[^:]+):(?P<line>\d+))?(?: \[\d+ hazards\])?$"
)
_DEVICE_FRAME = re.compile(
    r"^Device Frame: ?(?P<function>.+?)(?:\+0x[0-9a-f]+| \[0x[0-9a-f]+\])?"
    r"(?: in (?P<file>[^:]+):(?P<line>\d+))?$"
)
_WHO = re.compile(r"^by thread \((?P<thread>[\d,]+)\) in block \((?P<block>[\d,]+)\)$")
_SUMMARY = re.compile(r"^(?:ERROR|RACECHECK) SUMMARY: (?P<count>\d+)")
_HOST = ("Saved host backtrace", "Host Frame")


@dataclass(frozen=True)
class Place:
    """Where in the code."""

    function: str
    file: str | None
    """Name without folders."""
    line: int | None


@dataclass(frozen=True)
class SanitizerRecord:
    """One thing that the tool reported."""

    message: str
    """Its first line."""
    details: tuple[str, ...]
    """The further lines, host frames left out."""
    places: tuple[Place, ...]
    """Where it happened, innermost first; for a race each of the accesses."""
    thread: str | None
    """As `5,0,0`."""
    block: str | None


@dataclass(frozen=True)
class SanitizerLog:
    """Everything that is used of one log."""

    records: tuple[SanitizerRecord, ...]
    reported: int | None
    """Count of the summary line; None if there is none, which means that the tool did not finish.
    It may exceed the records, of which only the first are printed."""


def read_log(text: str) -> SanitizerLog:
    """Return the records of a log; lines without the tool's prefix are the program's own."""
    records: list[SanitizerRecord] = []
    lines: list[str] = []
    reported: int | None = None
    for raw in text.splitlines():
        if not raw.startswith(PREFIX):
            continue
        body = raw[len(PREFIX) :]
        summary = _SUMMARY.match(body.strip())
        if summary is not None:
            reported = int(summary["count"])
        continues = body.startswith("  ") and body.strip() != ""
        if continues and lines:
            lines.append(body.strip())
            continue
        if lines:
            records.append(_record(lines))
        lines = [] if summary or not body.strip() else [body.strip()]
    if lines:
        records.append(_record(lines))
    found = (record for record in records if record.message != "COMPUTE-SANITIZER")
    return SanitizerLog(tuple(found), reported)


def _record(lines: list[str]) -> SanitizerRecord:
    details = tuple(line for line in lines[1:] if not line.startswith(_HOST))
    who = next((found for found in map(_WHO.match, details) if found), None)
    places = [_place(line) for line in lines if not line.startswith(_HOST)]
    return SanitizerRecord(
        message=lines[0],
        details=details,
        places=tuple(place for place in places if place is not None),
        thread=who["thread"] if who else None,
        block=who["block"] if who else None,
    )


def _place(line: str) -> Place | None:
    found = _DEVICE_FRAME.match(line) or _PLACE.match(line)
    if found is None:
        return None
    file, number = found["file"], found["line"]
    name = file.rsplit("/", 1)[-1] if file else None
    return Place(found["function"], name, int(number) if number else None)
