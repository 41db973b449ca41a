"""Machine code as instructions with their operands and scheduling bits.

nvdisasm names operation and operands; the scheduling bits are read from the instruction words. Of
its 16 bytes bits 105 to 108 are the clocks before the next instruction of the warp, 110 to 112 the
scoreboard that is set when the result is there, 113 to 115 the one that is set when the operands
were read (7: none), 116 to 121 the mask of scoreboards that are waited for.

Source: Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018,
section 2.1; the same in compute capability 9.0 and 10.0.
"""

import json
import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

NO_SCOREBOARD = 7
INSTRUCTION_BYTES = 16
_JOINED = re.compile(r"(?<![\w.])(U?[RP](?:\d+|Z|T))\[")
"""A destination that nvdisasm does not part from its address: `R3[R2.64]`."""


@dataclass(frozen=True)
class Instruction:
    """One instruction."""

    address: int
    """In bytes, within its kernel."""
    guard: str
    """The predicate under which it runs, such as `P0` or `!P3`; empty: always."""
    operation: str
    modifiers: frozenset[str]
    operands: tuple[str, ...]
    stall: int
    """Clocks before the next instruction of the warp."""
    sets: int
    """Scoreboard that is set with the result."""
    frees: int
    """Scoreboard that is set once the operands were read."""
    waits: int
    """Mask of the scoreboards that are waited for."""

    @cached_property
    def target(self) -> int | None:
        """The address that a branch or call leads to, or adds to a register; None: not told."""
        try:
            return int(self.operands[-1], 16)
        except (IndexError, ValueError):
            return None


def read_instructions(
    listing: str, code: Mapping[str, bytes]
) -> dict[str, tuple[Instruction, ...]]:
    """Return the instructions of each kernel with the functions that it calls.

    Args:
        listing: The output of `nvdisasm -json`.
        code: Machine code by kernel, as in `CubinFacts`.

    Raises:
        ValueError: `listing` is not its [metadata, functions].
    """
    _, functions = cast(tuple[Any, list[dict[str, Any]]], json.loads(listing))
    parts: dict[str, list[dict[str, Any]]] = {}
    kernel = ""
    for function in functions:
        if function["start"] == 0:  # what follows at other offsets is called by this one
            kernel = str(function["function-name"])
        parts.setdefault(kernel, []).append(function)
    return {name: tuple(_of_kernel(parts[name], code[name])) for name in parts if name in code}


def _of_kernel(functions: list[dict[str, Any]], code: bytes) -> Iterator[Instruction]:
    starts = {str(one["function-name"]): f"{one['start']:#x}" for one in functions}
    words = list(struct.iter_unpack("<QQ", code))
    for function in functions:
        for one in _of_function(function, words):
            if one.operation in ("CALL", "RET") and one.operands:
                *registers, name = one.operands
                one = replace(one, operands=(*registers, starts.get(name, name)))
            yield one


def _of_function(function: dict[str, Any], words: list[tuple[Any, ...]]) -> Iterator[Instruction]:
    first = function["start"] // INSTRUCTION_BYTES
    for place, entry in enumerate(function["sass-instructions"], first):
        operation, *modifiers = str(entry["opcode"]).split(".")
        bits = int(words[place][1]) >> 41
        yield Instruction(
            address=place * INSTRUCTION_BYTES,
            guard=str(entry.get("predicate", "")).strip().removeprefix("@"),
            operation=operation,
            modifiers=frozenset(modifiers),
            operands=tuple(_split(str(entry.get("operands", "")))),
            stall=max(1, bits & 0xF),
            sets=bits >> 5 & 7,
            frees=bits >> 8 & 7,
            waits=bits >> 11 & 0x3F,
        )


def _split(operands: str) -> Iterator[str]:
    """Yield operands at the commas outside of brackets, without reuse hints."""
    depth, start = 0, 0
    text = _JOINED.sub(r"\1,[", operands.replace(".reuse", "")) + ","
    for place, letter in enumerate(text):
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and depth == 0:
            if part := text[start:place].strip():
                yield part
            start = place + 1
