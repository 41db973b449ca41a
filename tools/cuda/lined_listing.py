"""Machine code with the source lines that it came from, and what each instruction waits for.

Every instruction word has its scheduling beside the operation: clocks until the next one, and six
scoreboards, of which one is set by a result that comes late and any are waited for.

Source of the bits: Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via
Microbenchmarking", 2018, section 2.1; the same in compute capability 9.0 and 10.0.
"""

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from kopt.config.settings import Settings

from .compiler_log import CANDIDATE_FILE
from .cubin import read_cubin
from .nvdisasm import run_nvdisasm
from .toolchain import FoundToolchain

_SECTION = re.compile(r"^\.text\.(.+):$")
_LINE = re.compile(r'//## File "([^"]*)", line (\d+)')
_LABEL = re.compile(r"^\.L_x_\d+:")
_INSTRUCTION = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;\s*$")
_NO_SCOREBOARD = 7
_BYTES = 16
# Bits 105 to 108, 110 to 112, 113 to 115 and 116 to 121, counted in the upper half.
_STALL, _SETS, _FREES, _WAITS = 41, 46, 49, 52


@dataclass(frozen=True)
class LinedInstruction:
    """One instruction."""

    address: int
    """In bytes, from the start of its kernel."""
    text: str
    """With its predicate before it."""
    line: int | None
    """The candidate's line that it came from; None for the compiler's own."""
    stall: int
    """Clocks before the next instruction of the warp."""
    sets: int | None
    """The scoreboard that its result sets."""
    frees: int | None
    """The scoreboard that is set once its operands were read."""
    waits: tuple[int, ...]
    """The scoreboards that it waits for."""
    is_target: bool
    """Whether a branch leads to it."""

    @property
    def words(self) -> str:
        """`00d0 L31 LDG.E.128 R4, [R2.64]; waits 2; sets 0; stall 4`."""
        line = "" if self.line is None else f" L{self.line}"
        parts = [f"{self.address:04x}{line} {self.text}"]
        if self.waits:
            parts.append(f"waits {' '.join(map(str, self.waits))}")
        parts += [f"sets {self.sets}"] if self.sets is not None else []
        parts += [f"frees {self.frees}"] if self.frees is not None else []
        return "; ".join((*parts, f"stall {self.stall}"))


Listing = Mapping[str, tuple[LinedInstruction, ...]]
"""Instructions by kernel."""


def lined_instructions(cubin: bytes, toolchain: FoundToolchain, settings: Settings) -> Listing:
    """Return the instructions of every kernel in a cubin with lines, without padding at the end.

    Empty where no nvdisasm is installed.

    Raises:
        InfraError: nvdisasm cannot read a cubin of its own toolkit.
    """
    text = run_nvdisasm(cubin, toolchain, settings, ("-gi",))
    if text is None:
        return {}
    code = read_cubin(cubin).code
    found: dict[str, tuple[LinedInstruction, ...]] = {}
    for name, rows in _kernels(text).items():
        if name in code:
            found[name] = tuple(_instructions(rows, code[name]))
    return found


@dataclass(frozen=True)
class _Row:
    """One instruction as nvdisasm prints it."""

    address: int
    text: str
    line: int | None
    is_target: bool


def _kernels(text: str) -> dict[str, list[_Row]]:
    """Return the instructions of each kernel as they are printed."""
    kernels: dict[str, list[_Row]] = {}
    rows: list[_Row] = []
    line: int | None = None
    is_new, is_target = True, False
    for row in text.split("\n"):
        if section := _SECTION.match(row.strip()):
            rows = kernels.setdefault(section[1], [])
            line = None
        elif place := _LINE.search(row):
            # Several in a row: from the innermost of what was inlined to the candidate's own.
            if is_new:
                line, is_new = None, False
            if PurePosixPath(place[1]).name == CANDIDATE_FILE:
                line = int(place[2])
        elif _LABEL.match(row):
            is_target = True
        elif instruction := _INSTRUCTION.match(row):
            words = " ".join(instruction[2].split())
            rows.append(_Row(int(instruction[1], 16), words, line, is_target))
            is_new, is_target = True, False
    return kernels


def _instructions(rows: list[_Row], code: bytes) -> Iterator[LinedInstruction]:
    while rows and rows[-1].text == "NOP":
        rows.pop()
    for row in rows:
        if row.address + _BYTES > len(code):
            return
        _, high = struct.unpack_from("<QQ", code, row.address)
        yield LinedInstruction(
            address=row.address,
            text=row.text,
            line=row.line,
            stall=(high >> _STALL) & 0xF,
            sets=_scoreboard(high >> _SETS),
            frees=_scoreboard(high >> _FREES),
            waits=tuple(board for board in range(6) if high >> _WAITS >> board & 1),
            is_target=row.is_target,
        )


def _scoreboard(bits: int) -> int | None:
    board = bits & 7
    return None if board == _NO_SCOREBOARD else board
