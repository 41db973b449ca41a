"""What compute-sanitizer writes, and what it means for a candidate: a status, and diagnostics.

The text is read, not the XML that `--xml` offers: the text of every kind of record is documented,
while the XML is documented as a list of suppressions only. Few forms are relied on: a record begins
with an unindented line, `at FUNCTION+OFFSET in FILE:LINE` says where, `by thread (x,y,z) in block
(x,y,z)` says who, and a summary line comes last. Without a summary the tool did not finish.

Source: NVIDIA, Compute Sanitizer User Manual, 2025.3 to 2026.5.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kopt.kernels.check_result import SanitizerTool
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.cuda.compiler_log import CANDIDATE_FILE
from kopt.tools.gpu.one_shot_files import OneShotBuffer

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
class CodePlace:
    """A place in the code."""

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
    places: tuple[CodePlace, ...]
    """Where it happened, innermost first; for a race each of the accesses."""
    thread: str | None
    """Index of the thread in its block, e.g. `5,0,0`."""
    block: str | None


@dataclass(frozen=True)
class SanitizerLog:
    """The records and the summary of one log."""

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


def _place(line: str) -> CodePlace | None:
    found = _DEVICE_FRAME.match(line) or _PLACE.match(line)
    if found is None:
        return None
    file, number = found["file"], found["line"]
    name = file.rsplit("/", 1)[-1] if file else None
    return CodePlace(found["function"], name, int(number) if number else None)


SHOWN = 20
"""Findings that a result carries; the log has all."""

_DEFAULT: dict[SanitizerTool, Status] = {
    "memcheck": Status.OUT_OF_BOUNDS,
    "initcheck": Status.UNINITIALIZED_READ,
    "racecheck": Status.DATA_RACE,
    "synccheck": Status.BARRIER_DIVERGENCE,
}
_BY_WORDS: tuple[tuple[str, Status], ...] = (
    ("misaligned", Status.MISALIGNED),
    ("Uninitialized", Status.UNINITIALIZED_READ),
    ("Race reported", Status.DATA_RACE),
    ("hazard detected", Status.DATA_RACE),
    ("might not have entered yet", Status.DATA_RACE),
    ("might have already exited", Status.DATA_RACE),
    ("Barrier error", Status.BARRIER_DIVERGENCE),
    ("Warpgroup MMA sequence error", Status.BARRIER_DIVERGENCE),
    ("Deadlock detected", Status.BARRIER_DIVERGENCE),
    ("out of bounds", Status.OUT_OF_BOUNDS),
    ("Invalid __", Status.OUT_OF_BOUNDS),
    ("stack overflow", Status.CRASH),
    ("llegal instruction", Status.CRASH),
    ("assert", Status.CRASH),
    ("trap", Status.CRASH),
)
"""Looked for in a record's message and details, in this order."""
_HINTS = {
    Status.OUT_OF_BOUNDS: "guard the index; mind the last row and the last vector",
    Status.MISALIGNED: "align the address to the width of the access, or use a narrower one",
    Status.UNINITIALIZED_READ: "write it first: outputs, shared memory and scratch hold nothing at "
    "the start, unless the header says `init: zero`",
    Status.DATA_RACE: "put __syncthreads(), __syncwarp() or an atomic between the two accesses",
    Status.BARRIER_DIVERGENCE: "move the barrier out of the branch: every thread named must reach "
    "it",
}
_OF_API = "Program hit "
_INTERNAL = "Internal Sanitizer Error: "
_OF_TOOL = "Error: "
_RACE = ("Error: Race", "Error: Potential")
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


@dataclass(frozen=True)
class JudgedRecords:
    """The status and the diagnostics that the records of one tool amount to."""

    status: Status
    """passed if there is no error among them; warnings do not change it."""
    diagnostics: tuple[Diagnostic, ...] = ()
    trouble: str | None = None
    """What the tool says about itself; it then judged nothing, or not all."""
    harmless: int = 0
    """Records that are no errors of the kernel, which the tool's own count may include."""


def judge_records(
    tool: SanitizerTool, records: Sequence[SanitizerRecord], buffers: Sequence[OneShotBuffer]
) -> JudgedRecords:
    """Return the findings among `records`, errors first, in the order reported.

    Args:
        tool: Whose records.
        records: Of one log. Failed CUDA calls are left out: they follow from what is reported
            beside them, and kopt reports them itself.
        buffers: Where tensors and scratch lay, to name them.
    """
    trouble = next((t for t in map(_trouble, records) if t is not None), None)
    kernel_records = [record for record in records if _is_of_kernel(record)]
    errors = [record for record in kernel_records if not _is_warning(record)]
    warnings = [record for record in kernel_records if _is_warning(record)]
    status = _status(tool, errors[0]) if errors else Status.PASSED
    found = (*_grouped(tool, errors, buffers), *_grouped(tool, warnings, buffers))
    return JudgedRecords(status, found[:SHOWN], trouble, len(records) - len(errors))


def _trouble(record: SanitizerRecord) -> str | None:
    message = record.message
    if message.startswith(_INTERNAL):
        return message.removeprefix(_INTERNAL)
    if message.startswith(_OF_TOOL) and not message.startswith(_RACE):
        return message.removeprefix(_OF_TOOL)
    return None


def _is_of_kernel(record: SanitizerRecord) -> bool:
    """Whether it is about device code; a notice of the tool names no place."""
    if _trouble(record) is not None or record.message.startswith(_OF_API):
        return False
    return bool(record.places) or any(word in record.message for word, _ in _BY_WORDS)


def _is_warning(record: SanitizerRecord) -> bool:
    return record.message.startswith(("Warning", "Info"))


def _status(tool: SanitizerTool, record: SanitizerRecord) -> Status:
    # Lines with places hold names of functions, which may contain any word.
    details = (text for text in record.details if not text.startswith(("at ", "Device Frame")))
    text = " ".join((record.message, *details))
    return next((status for word, status in _BY_WORDS if word in text), _DEFAULT[tool])


def _grouped(
    tool: SanitizerTool, records: Sequence[SanitizerRecord], buffers: Sequence[OneShotBuffer]
) -> list[Diagnostic]:
    """One diagnostic for all threads that did the same at the same place."""
    groups: dict[tuple[object, ...], list[SanitizerRecord]] = {}
    for record in records:
        message = _ADDRESS.sub("", record.message)
        groups.setdefault((message, record.places), []).append(record)
    return [_diagnostic(tool, group, buffers) for group in groups.values()]


def _diagnostic(
    tool: SanitizerTool, group: Sequence[SanitizerRecord], buffers: Sequence[OneShotBuffer]
) -> Diagnostic:
    first = group[0]
    own = [place for place in first.places if place.file == CANDIDATE_FILE]
    place = (*own, *first.places)[0] if first.places else None
    others = [f"line {one.line}" for one in own[1:] if one.line is not None]
    parts = [first.message.removeprefix(_OF_TOOL).removeprefix("Warning: ").rstrip(" :.")]
    if place is not None and place.function not in parts[0]:
        parts[0] += f" in {place.function}"
    if others and tool == "racecheck":
        parts.append(f"with {', '.join(others)}")
    if first.thread is not None:
        parts.append(f"thread ({first.thread}) of block ({first.block})")
    parts += [_named(text, buffers) for text in first.details if _is_about_address(text)]
    if len(group) > 1:
        parts.append(f"{len(group)} like it were printed")
    is_own = place is None or place.file in (CANDIDATE_FILE, None)
    return Diagnostic(
        severity="warning" if _is_warning(first) else "error",
        message=f"{tool}: {'; '.join(parts)}",
        line=place.line if place else None,
        file=None if is_own or place is None else place.file,
        hint=_HINTS.get(_status(tool, first)),
    )


def _is_about_address(text: str) -> bool:
    return "0x" in text and not text.startswith(("at ", "Device Frame", "and Read", "and Write"))


def _named(text: str, buffers: Sequence[OneShotBuffer]) -> str:
    """Return `text` with the addresses of buffers replaced by their names."""
    by_address = {buffer.address: buffer.name for buffer in buffers}

    def name(found: re.Match[str]) -> str:
        buffer = by_address.get(int(found[0], 16))
        return found[0] if buffer is None else f"`{buffer}`"

    return _ADDRESS.sub(name, text.replace("the nearest allocation at", "the buffer at"))
