"""The visits of a warp as steps of the time model: runs of arithmetic are one step each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .instructions import NO_SCOREBOARD, Instruction
from .requests import LOCAL
from .warp_path import Visit

Kind = Literal[
    "arithmetic",
    "load",
    "store",
    "shared",
    "shuffle",
    "barrier",
    "cluster_barrier",
    "wait",
    "trigger",
    "remote_store",
    "arrival",
    "copy_group",
    "copy_wait",
]
_KINDS: dict[str, Kind] = {
    **dict.fromkeys(("LDG", "LD", "LDGSTS", "ATOM", "ATOMG"), "load"),
    **dict.fromkeys(("STG", "ST", "REDG", "RED"), "store"),
    **dict.fromkeys(("LDS", "LDSM", "STS", "STSM", "ATOMS", "LDL", "STL"), "shared"),
    "SHFL": "shuffle",
    "BAR": "barrier",
    "UCGABAR_WAIT": "cluster_barrier",
    "ACQBULK": "wait",
    "PREEXIT": "trigger",
    "STAS": "remote_store",
    "LDGDEPBAR": "copy_group",
    "DEPBAR": "copy_wait",
}
_LATENCIES = {
    **dict.fromkeys(("LDC", "ULDC", "LDCU"), "constant"),
    **dict.fromkeys(("S2R", "S2UR", "CS2R", "R2UR"), "special_register"),
    **dict.fromkeys(("MUFU", "I2F", "F2I", "F2F", "POPC", "FLO"), "special_function"),
    **dict.fromkeys(("MEMBAR", "ERRBAR", "FENCE"), "shared"),
}
_HALF_RATE = frozenset(
    {"IMAD", "IADD3", "LOP3", "SHF", "LEA", "ISETP", "SEL", "PRMT", "VIADD", "VIMNMX", "IABS"}
    | {"IADD", "IMNMX", "SGXT", "BREV", "VIADDMNMX", "FSETP", "FMNMX", "FSEL", "HMNMX2", "F2FP"}
)
_QUARTER_RATE = frozenset({"MUFU", "I2F", "F2I", "F2F", "POPC", "FLO"})
_DOUBLE = frozenset({"DADD", "DMUL", "DFMA", "DSETP"})
_CODE_LINE_SHIFT = 7
"""Machine code is fetched by lines of 128 bytes."""


@dataclass
class WarpStep:
    """What a warp does at once."""

    kind: Kind = "arithmetic"
    index: int = 0
    """Place of its first instruction in the kernel."""
    slots: int = 0
    """Instructions that are issued."""
    clocks: int = 0
    """Until the warp may go on."""
    pipes: dict[int, int] = field(default_factory=dict[int, int])
    """Clocks that the scheduler's pipes are taken, by what one instruction takes: 2 where 16 lanes
    of a pipe serve a scheduler, 8 where 4 do."""
    lines: list[int] = field(default_factory=list[int])
    """Lines of code that it enters."""
    waits: int = 0
    sets: int = NO_SCOREBOARD
    frees: int = NO_SCOREBOARD
    latency: str = ""
    """Name of its constant, for a result that comes late."""
    sectors: tuple[int, ...] = ()
    passes: int = 1
    least: int = 1
    """The fewest sectors, or passes, in which the same bytes could be had."""
    lane_bytes: int = 0
    """Bytes that a lane asks for; 0 where it is no access."""
    is_copy: bool = False
    """Whether it is a load past the registers, by cp.async."""
    groups: int = 0
    """Groups of such copies that a wait for them leaves under way."""
    is_local: bool = False
    """Whether it is a spilled register or another part of a thread's own memory."""


def steps_of(code: Sequence[Instruction], visits: Sequence[Visit]) -> tuple[WarpStep, ...]:
    """Return the steps of a warp."""
    return tuple(_joined(code, visits))


def _joined(code: Sequence[Instruction], visits: Sequence[Visit]) -> Iterator[WarpStep]:
    run = WarpStep()
    line = -1
    for visit in visits:
        one = code[visit.index]
        step = _step(one, visit)
        if one.address >> _CODE_LINE_SHIFT != line:
            line = one.address >> _CODE_LINE_SHIFT
            step.lines.append(line)
        if _is_plain(step) and not (step.waits and run.slots):
            _add(run, step)
            continue
        if run.slots:
            yield run
            run = WarpStep()
        if _is_plain(step):
            run = step
        else:
            yield step
    if run.slots:
        yield run


def _is_plain(step: WarpStep) -> bool:
    """Return whether a step is arithmetic whose result is there when the warp goes on."""
    return step.kind == "arithmetic" and step.sets == step.frees == NO_SCOREBOARD


def _add(run: WarpStep, step: WarpStep) -> None:
    if not run.slots:
        run.index = step.index
    run.waits |= step.waits
    run.slots += 1
    run.clocks += step.clocks
    run.lines += step.lines
    for clocks, taken in step.pipes.items():
        run.pipes[clocks] = run.pipes.get(clocks, 0) + taken


def _step(one: Instruction, visit: Visit) -> WarpStep:
    if visit.active == 0:
        return WarpStep(index=visit.index, slots=1, clocks=one.stall, waits=one.waits)
    kind = _KINDS.get(one.operation, "arithmetic")
    if one.operation == "SYNCS" and "TRYWAIT" in one.modifiers:
        kind = "arrival"
    clocks = _issue_clocks(one.operation)
    access = visit.access
    return WarpStep(
        kind=kind,
        index=visit.index,
        slots=1,
        clocks=one.stall,
        pipes={clocks: clocks} if clocks > 1 else {},
        waits=one.waits,
        sets=one.sets,
        frees=one.frees,
        latency=_LATENCIES.get(one.operation, ""),
        sectors=() if access is None else access.sectors,
        passes=1 if access is None else access.passes,
        least=1 if access is None else access.least,
        lane_bytes=0 if access is None else access.lane_bytes,
        is_copy=one.operation == "LDGSTS",
        groups=(one.target or 0) if kind == "copy_wait" else 0,
        is_local=one.operation in LOCAL,
    )


def _issue_clocks(operation: str) -> int:
    """Return the clocks that a scheduler's pipe is taken by one instruction of a warp."""
    if operation in _QUARTER_RATE:
        return 8
    if operation in _DOUBLE:
        return 16
    return 2 if operation in _HALF_RATE else 1
