"""What a sanitizer's records mean for a candidate: a status, and diagnostics with its own lines.

It judges what was read (`log.py`); how the tool was run is `stage.py`'s.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kopt.kernels.record import Diagnostic
from kopt.kernels.sanitizer_result import SanitizerTool
from kopt.kernels.status import Status
from kopt.tools.cuda.compiler_log import CANDIDATE_FILE
from kopt.tools.gpu.one_shot_files import OneShotBuffer

from .log import SanitizerRecord

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
class Findings:
    """What the records of one tool say."""

    status: Status
    """passed if there is no error among them; warnings do not change it."""
    diagnostics: tuple[Diagnostic, ...] = ()
    trouble: str | None = None
    """What the tool says about itself; it then judged nothing, or not all."""
    harmless: int = 0
    """Records that are no errors of the kernel, which the tool's own count may include."""


def judge_records(
    tool: SanitizerTool, records: Sequence[SanitizerRecord], buffers: Sequence[OneShotBuffer]
) -> Findings:
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
    return Findings(status, found[:SHOWN], trouble, len(records) - len(errors))


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
