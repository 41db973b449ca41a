"""What a kernel asks of the caches: lines to keep longer than others, data to fetch ahead.

A line that is kept may still be there in a later call, and a time then says what earlier calls
left. Every access names a 64-bit descriptor in uniform registers. It is the driver's, read from a
fixed place of constant bank 0, or one that the kernel made or was given: a cache policy. Policies
that only stream (evicted first, or like everything else) are not reported.

A prefetch before the wait of a programmatic dependent launch is told apart: it works while the
launch before still runs, which in a model is only then writing what would be fetched.

The writer of a register is looked for upwards, by place and not by flow: a reader for a warning.
So is what comes before the wait: code that the compiler moved behind it is a plain prefetch here.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Literal

Request = Literal["cache_policy", "prefetch", "early_prefetch"]
Instruction = tuple[str, str]
"""Opcode and operands, as nvdisasm prints them."""

_DESCRIPTOR = re.compile(r"\bdesc\[UR(\d+)\]")
"""A cache policy is named so; `gdesc` is an operand of `wgmma` in shared memory."""
_DESTINATION = re.compile(r"(?:U?PT?\d*,)*UR(\d+)(?:,|$)")
_UNIFORM = re.compile(r"UR(\d+)")
_IMMEDIATE = re.compile(r"UR\d+,(0x[0-9a-f]+)$")
_MOVES = re.compile(r"U?MOV|R2UR|IMAD\.(MOV\.)?U32")
_MOVED = re.compile(r",(U?R\d+)(?:\.reuse)?$")
_CONSTANT = re.compile(r"U?R\d+,c\[0x0\]\[(0x[0-9a-f]+)\]$")
_LOADS = ("ULDC", "LDCU")
_TO_UNIFORM = (*_LOADS, "R2UR", "S2UR", "CREDUX", "VOTEU")
_NO_DESTINATION = re.compile(r"U(TMA|BLK|CGABAR|.*SETP|PLOP3|SYNCS)")
_KEEPING_WORDS = re.compile(r"(EL|ELL2)")
_PREFETCHING = re.compile(r"(CCTL\..*\bP(F|M)\w*|UBLKPF|UTMAPF)")
_WAIT = "ACQBULK"
_DEPTH = 6
# Upper words of policies, whole or as createpolicy puts them together: evicted first, unchanged,
# normal. Evicted last is 0x14.
# Source: the machine code of createpolicy; cute/arch/copy_sm90_desc.hpp of CUTLASS, CacheHintSm90.
_STREAMING = frozenset({0x10, 0x12, 0x16})
_ASSEMBLED = frozenset(kind << 4 for kind in (*_STREAMING, 0x14, 0x1C))


def cache_requests(instructions: Sequence[Instruction], default_slot: int) -> frozenset[Request]:
    """Return what one kernel asks for.

    Args:
        instructions: Of the kernel, in order of address.
        default_slot: Where in constant bank 0 the driver's descriptor lies.
    """
    found: set[Request] = set()
    waits = [place for place, (opcode, _) in enumerate(instructions) if opcode.startswith(_WAIT)]
    first_wait = min(waits, default=0)
    for place, (opcode, operands) in enumerate(instructions):
        if _PREFETCHING.match(opcode):
            found.add("early_prefetch" if place < first_wait else "prefetch")
        if any(_KEEPING_WORDS.fullmatch(word) for word in opcode.split(".")[1:]):
            found.add("cache_policy")
        if opcode.startswith("CCTL") and "PML2" in opcode:
            found.add("cache_policy")
        used = _DESCRIPTOR.search(operands)
        if used and not _is_harmless(instructions, place, int(used[1]), default_slot):
            found.add("cache_policy")
    return frozenset(found)


def _is_harmless(
    instructions: Sequence[Instruction], end: int, register: int, default_slot: int
) -> bool:
    """Return whether a pair of registers holds the driver's descriptor, or one that streams."""
    slot = _slot_behind(instructions, end, f"UR{register}", _DEPTH)
    if slot is not None:
        return slot == default_slot
    kinds = {
        kind
        for word in _immediates(instructions, end, register + 1, _DEPTH)
        for kind in (word >> 24, word >> 4 if word in _ASSEMBLED else 0)
        if kind
    }
    return bool(kinds) and kinds <= _STREAMING


def _slot_behind(
    instructions: Sequence[Instruction], end: int, register: str, depth: int
) -> int | None:
    """Return the place in constant bank 0 that a register was loaded from, through moves.

    Loops and calls keep the descriptor in ordinary registers, and move it from one to another.
    """
    if register.startswith("U"):
        writer = _writer(instructions, end, int(register[2:]))
    else:
        writer = _last_write(instructions, end, register)
    if writer is None:
        return None
    opcode, operands = instructions[writer]
    if opcode.startswith((*_LOADS, "LDC")):
        slot = _CONSTANT.search(operands)
        return None if slot is None else int(slot[1], 16)
    moved = _MOVED.search(operands) if _MOVES.fullmatch(opcode) else None
    return _slot_behind(instructions, writer, moved[1], depth - 1) if moved and depth else None


def _last_write(instructions: Sequence[Instruction], end: int, register: str) -> int | None:
    """Return the place of the last instruction before `end` that writes an ordinary register."""
    for place in range(end - 1, -1, -1):
        if instructions[place][1].startswith(f"{register},"):
            return place
    return None


def _immediates(
    instructions: Sequence[Instruction], end: int, register: int, depth: int
) -> Iterator[int]:
    """Yield the numbers that a register was put together from."""
    writer = _writer(instructions, end, register)
    if writer is None or not depth:
        return
    opcode, operands = instructions[writer]
    if opcode.startswith("UMOV"):
        number = _IMMEDIATE.search(operands)
        if number:
            yield int(number[1], 16)
            return
    for source in {int(name) for name in _UNIFORM.findall(operands.partition(",")[2])}:
        yield from _immediates(instructions, writer, source, depth - 1)


def _writer(instructions: Sequence[Instruction], end: int, register: int) -> int | None:
    """Return the place of the last instruction before `end` that writes a uniform register."""
    for place in range(end - 1, -1, -1):
        opcode, operands = instructions[place]
        if not opcode.startswith(("U", *_TO_UNIFORM)) or _NO_DESTINATION.match(opcode):
            continue
        destination = _DESTINATION.match(operands)
        if destination:
            first = int(destination[1])
            if first <= register < first + _registers(opcode):
                return place
    return None


def _registers(opcode: str) -> int:
    if ".128" in opcode:
        return 4
    return 2 if ".64" in opcode or opcode.startswith("UIMAD.WIDE") else 1
