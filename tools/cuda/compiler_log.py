"""Compiler text to diagnostics: nvcc's front end, its preprocessor, NVRTC and ptxas.

nvcc shows source lines after preprocessing, so that its caret does not count columns of the file
that the author wrote. Here every excerpt is cut from the candidate itself, and the column is that
of the same word there, or nothing. The whole text stays in the log; this reads what an author
needs. `ptxas -v` tells registers, spills, stack and shared memory of each kernel: nvcc writes it to
stderr, NVRTC into the program log, and spills are nowhere else told apart into stores and loads.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from kopt.kernels.parameter_types import ASSERTIONS_FILE
from kopt.kernels.record import Diagnostic, source_excerpt

CANDIDATE_FILE = "candidate.cu"
"""Name under which every candidate is compiled: its real name must not reach the binary."""
MAX_DIAGNOSTICS = 40
Severity = Literal["error", "warning", "note"]
_MAX_MESSAGE_CHARACTERS = 600

_SEVERITIES = "catastrophic error|fatal error|internal error|error|warning|note|remark"
_FRONT_END = re.compile(
    rf"^(?P<file>\S[^()]*)\((?P<line>\d+)\): (?P<severity>{_SEVERITIES})"
    r"(?: #[\w-]+)?: (?P<message>.*)$"
)
_PREPROCESSOR = re.compile(
    rf"^(?P<file>\S[^:]*):(?P<line>\d+):(?:(?P<column>\d+):)? "
    rf"(?P<severity>{_SEVERITIES}): (?P<message>.*)$"
)
_AT_END = re.compile(
    rf"^At end of source: (?P<severity>{_SEVERITIES})"
    r"(?: #[\w-]+)?: (?P<message>.*)$"
)
_PTXAS_LINE = re.compile(
    r"^ptxas .*, line (?P<ptx_line>\d+); (?P<severity>error|warning)\s*: "
    r"(?P<message>.*)$"
)
_TOOL = re.compile(
    r"^(?P<tool>ptxas|nvcc|nvlink|cicc|gcc|g\+\+|nvrtc)\s*:?\s*"
    r"(?P<severity>error|fatal|fatal error|warning)\s*: (?P<message>.*)$"
)
_HEADERS = (_FRONT_END, _PREPROCESSOR, _AT_END, _PTXAS_LINE, _TOOL)
_CARET = re.compile(r"^\s*(?:\|\s*)?\^[~ ]*$")
_USED_AT = re.compile(rf"at line (\d+) of {re.escape(CANDIDATE_FILE)}")
_WORD = re.compile(r"\w+|\S")
_UNROLLED_MACRO = re.compile(r"\s*#\s*pragma\s+unroll\b")
_UNROLL_HINT = "#pragma unroll takes no macro: write `constexpr int N = NAME;` and unroll N"
_NOT_THERE = re.compile(
    r"(?:Instruction|Feature) '([^']+)' (?:not supported on .target|cannot be compiled for"
    r" architecture) '([^']+)'"
)
_ONLY_ON = (("wgmma", "sm_90a"), ("tcgen05", "sm_100a"), ("setmaxnreg", "sm_90a"))
_SUMMARY = ("Ptx assembly aborted due to errors",)


@dataclass(frozen=True)
class _Entry:
    """One message of the compiler with the lines that belong to it."""

    header: re.Match[str]
    body: tuple[str, ...]

    def field(self, name: str) -> str | None:
        return self.header.groupdict().get(name)


def parse_log(text: str, source: str, ptx: str | None = None) -> tuple[Diagnostic, ...]:
    """Return what `text` reports about `source`, errors first, without repetitions.

    With `ptx`, made with a line table, errors of ptxas have lines of the source. Messages about
    the assertions behind the candidate keep `ASSERTIONS_FILE` as their file.
    """
    found: dict[Diagnostic, None] = {}
    for entry in _entries(text):
        diagnostic = _diagnostic(entry, source, ptx)
        if diagnostic is not None:
            found[diagnostic] = None
    rank = {"error": 0, "warning": 1, "note": 2}
    ordered = sorted(found, key=lambda diagnostic: rank[diagnostic.severity])
    if len(ordered) <= MAX_DIAGNOSTICS:
        return tuple(ordered)
    left_out = Diagnostic(
        severity="note",
        message=f"{len(ordered) - MAX_DIAGNOSTICS} more messages are in the compiler log",
    )
    return (*ordered[:MAX_DIAGNOSTICS], left_out)


def names_ptx_lines(text: str) -> bool:
    """Return whether ptxas reports errors at lines of the PTX, which say nothing to an author."""
    return any(_PTXAS_LINE.match(line) for line in text.splitlines())


def _entries(text: str) -> Iterator[_Entry]:
    header: re.Match[str] | None = None
    body: list[str] = []
    for line in text.splitlines():
        match = next((m for m in (pattern.match(line) for pattern in _HEADERS) if m), None)
        if match is None and line.strip() and not line.startswith(("Remark:", "ptxas info")):
            body.append(line)
        elif match is not None or header is not None:
            if header is not None:
                yield _Entry(header, tuple(body))
            header, body = match, []
    if header is not None:
        yield _Entry(header, tuple(body))


def _diagnostic(entry: _Entry, source: str, ptx: str | None) -> Diagnostic | None:
    severity = _severity(entry.field("severity") or "error")
    message = _message(entry)
    if message in _SUMMARY:
        return None
    file, line = entry.field("file"), entry.field("line")
    if file is None:
        return _without_file(entry, source, ptx)
    if file == ASSERTIONS_FILE:
        return Diagnostic(severity=severity, message=message, file=ASSERTIONS_FILE)
    if file != CANDIDATE_FILE:
        return _elsewhere(entry, severity, message)
    lines = source.split("\n")
    number = int(line or 0)
    if not 1 <= number <= len(lines):
        return Diagnostic(severity=severity, message=message)
    column = _column(entry, lines[number - 1])
    unknown = message.startswith("identifier ")
    return Diagnostic(
        severity=severity,
        message=message,
        line=number,
        column=column,
        excerpt=source_excerpt(source, number, column),
        hint=_UNROLL_HINT if _UNROLLED_MACRO.match(lines[number - 1]) and unknown else None,
    )


def _without_file(entry: _Entry, source: str, ptx: str | None) -> Diagnostic:
    """Return a message of a tool behind the front end, at its line of the source if known."""
    severity = _severity(entry.field("severity") or "error")
    ptx_line = entry.field("ptx_line")
    is_ptxas = ptx_line is not None or entry.field("tool") == "ptxas"
    line = source_line(ptx, int(ptx_line), CANDIDATE_FILE) if ptx and ptx_line else None
    message = _message(entry)
    return Diagnostic(
        severity=severity,
        message=("ptxas: " if is_ptxas else "") + message,
        line=line,
        excerpt=source_excerpt(source, line) if line else None,
        hint=_architecture_hint(message),
    )


def _architecture_hint(message: str) -> str | None:
    """Return for which architecture to compile an instruction that another one has."""
    found = _NOT_THERE.search(message)
    if found is None:
        return None
    begins = (arch for prefix, arch in _ONLY_ON if found[1].startswith(prefix))
    arch = next(begins, None)
    asked = f"compile for it: --arch {arch}" if arch else "compile for a newer one by --arch"
    return f"{asked}; {found[2]} has no such instruction"


def _elsewhere(entry: _Entry, severity: Severity, message: str) -> Diagnostic | None:
    """Return a message about a header, at the line of the candidate that uses it if known."""
    if severity != "error":
        return None  # warnings inside headers are not the author's to mend
    name = _header_name(entry.field("file") or "")
    used_at = _USED_AT.search("\n".join(entry.body))
    return Diagnostic(
        message=f"{message} ({name} line {entry.field('line')})",
        file=name,
        line=int(used_at.group(1)) if used_at else None,
    )


def _header_name(path: str) -> str:
    """Return the name by which a header is included: no path of this machine in a result."""
    if "/kopt/" in path:
        return "kopt/" + path.rsplit("/kopt/", 1)[1]
    return path.rsplit("/include/", 1)[-1]


def _severity(text: str) -> Severity:
    if "error" in text or text == "fatal":
        return "error"
    return "warning" if text == "warning" else "note"


def _message(entry: _Entry) -> str:
    """Return the message with the indented lines that continue it, before the excerpt."""
    parts = [entry.field("message") or ""]
    for line in entry.body:
        text = line.strip()
        if line.startswith("            ") and text.startswith(("argument types", "function ")):
            parts.append(text)
    return " ".join(parts)[:_MAX_MESSAGE_CHARACTERS]


def _column(entry: _Entry, own_line: str) -> int | None:
    """Return the 1-based column in `own_line`, or None where it cannot be told."""
    if (column := entry.field("column")) is not None:
        return int(column)
    for shown, caret in zip(entry.body, entry.body[1:], strict=False):
        if _CARET.match(caret) and shown.startswith("  "):
            return _matching_column(shown[2:], caret.index("^") - 2, own_line)
    return None


def _matching_column(shown: str, offset: int, own_line: str) -> int | None:
    """Return where the word at `offset` of the preprocessed line stands in the author's line."""
    if shown.rstrip() == own_line.rstrip():
        return offset + 1
    words = [match.group() for match in _WORD.finditer(shown) if match.start() <= offset]
    if not words:
        return None
    places = [match.start() for match in _WORD.finditer(own_line) if match.group() == words[-1]]
    nth = words.count(words[-1])
    all_shown = sum(match.group() == words[-1] for match in _WORD.finditer(shown))
    if len(places) != all_shown:
        return None  # a macro brought or took some: which one is meant is unknown
    return places[nth - 1] + 1


_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"', re.MULTILINE)
_LOCATION = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s")


def source_line(ptx: str, ptx_line: int, file_name: str) -> int | None:
    """Return the 1-based line of `file_name` that line `ptx_line` of `ptx` stems from.

    `ptx` must have a line table (nvcc -lineinfo). None if the last location before that line is
    in another file, or if there is none.
    """
    files = {number for number, path in _FILE.findall(ptx) if path.rsplit("/", 1)[-1] == file_name}
    for line in reversed(ptx.splitlines()[:ptx_line]):
        location = _LOCATION.match(line)
        if location:
            return int(location.group(2)) if location.group(1) in files else None
    return None


_ENTRY = re.compile(r"Compiling entry function '([^']+)' for '([^']+)'")
_PROPERTIES = re.compile(r"Function properties for (\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")


@dataclass(frozen=True)
class PtxasKernel:
    """What ptxas reports for one entry function: a part of `KernelResources`, named as there."""

    registers_per_thread: int
    barriers: int
    stack_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int
    static_smem_bytes: int


def parse_ptxas_report(text: str) -> dict[str, PtxasKernel]:
    """Return the report of each entry function by name.

    Spills and stack of functions that a kernel calls and that were not inlined are added to
    nothing: ptxas states them per function, and the kernel's own stack includes its calls.
    """
    kernels: dict[str, PtxasKernel] = {}
    entry = function = ""
    stack = (0, 0, 0)
    for line in text.splitlines():
        if found := _ENTRY.search(line):
            entry, function, stack = found.group(1), "", (0, 0, 0)
        elif found := _PROPERTIES.search(line):
            function = found.group(1)
        elif (found := _STACK.search(line)) and function == entry:
            stack = (int(found.group(1)), int(found.group(2)), int(found.group(3)))
        elif (found := _USED.search(line)) and entry:
            kernels[entry] = _kernel(found, stack)
            entry = ""
    return kernels


def _kernel(used: re.Match[str], stack: tuple[int, int, int]) -> PtxasKernel:
    barriers = _BARRIERS.search(used.group(2))
    shared = _SHARED.search(used.group(2))
    return PtxasKernel(
        registers_per_thread=int(used.group(1)),
        barriers=int(barriers.group(1)) if barriers else 0,
        stack_bytes=stack[0],
        spill_store_bytes=stack[1],
        spill_load_bytes=stack[2],
        static_smem_bytes=int(shared.group(1)) if shared else 0,
    )
