"""What moves, conversions and special registers do, and which registers any other write forgets."""

import re
from dataclasses import dataclass

import numpy as np

from .instructions import Instruction
from .integers import INTEGERS, Effect
from .lanes import (
    ALL,
    LANES,
    WARP,
    Flags,
    Lanes,
    Words,
    filled,
    is_predicate,
    is_register,
    register_after,
    signed,
)

_MATRIX_REGISTERS = 8


@dataclass(frozen=True)
class Place:
    """Where a warp is, as its special registers say."""

    threads: tuple[Words, Words, Words]
    """threadIdx of each lane."""
    block: tuple[int, int, int]
    cluster_rank: int = 0

    def special(self, name: str) -> Words | None:
        """Return a special register; None for clocks and others that no address hangs on."""
        register, _, axis = name.partition(".")
        place = "XYZ".find(axis) if axis else 0
        match register:
            case "SR_TID":
                return self.threads[place]
            case "SR_CTAID":
                return filled(self.block[place])
            case "SR_CgaCtaId":
                return filled(self.cluster_rank)
            case "SR_LANEID":
                return LANES
            case _:
                return None


def move(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """MOV, UMOV."""
    lanes.write(one.operands[0], lanes.word(one.operands[1]), active)


def load_constant(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """LDC, ULDC, LDCU: one, two or four words of the constant bank."""
    name, source = one.operands[0], one.operands[1]
    count = _registers(one)
    if count == 1:
        lanes.write(name, lanes.word(source), active)
        return
    match = re.fullmatch(r"(c\[0x0\]\[)(0x[0-9a-f]+)\]", source)
    for place in range(count):
        word = (
            None if match is None else lanes.word(f"{match[1]}{int(match[2], 16) + 4 * place:#x}]")
        )
        lanes.write(register_after(name, place), word, active)


def to_uniform(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """R2UR: the word of the first active lane."""
    registers = [name for name in one.operands if is_register(name)]
    word = lanes.word(registers[-1])
    first = int(np.argmax(active))
    lanes.write(registers[0], None if word is None else filled(int(word[first])), active)


def zero(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """CS2R: 64 bits of a clock, or of zero."""
    word = filled(0) if one.operands[1] == "SRZ" else None
    write = lanes.write if "32" in one.modifiers else lanes.write_double
    write(one.operands[0], word, active)


def packed_constant(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """HFMA2 of zeros and two halves, by which the compiler loads a constant."""
    if len(one.operands) < 5 or one.operands[2] != "RZ":
        forget(lanes, one, active)
        return
    try:
        halves = [int(np.float16(float(text)).view(np.uint16)) for text in one.operands[3:5]]
    except ValueError:
        forget(lanes, one, active)
        return
    lanes.write(one.operands[0], filled(halves[0] << 16 | halves[1]), active)


def to_float(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """I2F, I2FP: for the reciprocal by which an integer is divided."""
    word = lanes.word(one.operands[1])
    if word is None:
        forget(lanes, one, active)
        return
    if not any(name.startswith("U") for name in one.modifiers):
        word = signed(word)
    value = word.astype(np.float32)
    if "RP" in one.modifiers:
        rounded_down = value.astype(np.float64) < word
        value = np.where(rounded_down, np.nextafter(value, np.float32(np.inf)), value)
    lanes.write(one.operands[0], value.astype(np.float32).view(np.uint32).astype(np.int64), active)


def reciprocal(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """MUFU.RCP, the only special function that an address hangs on."""
    value = _float(lanes, one.operands[1])
    if value is None or "RCP" not in one.modifiers:
        forget(lanes, one, active)
        return
    with np.errstate(all="ignore"):
        found = (np.float32(1) / value).astype(np.float32)
    lanes.write(one.operands[0], found.view(np.uint32).astype(np.int64), active)


def to_integer(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """F2I, towards zero."""
    value = _float(lanes, one.operands[1])
    if value is None:
        forget(lanes, one, active)
        return
    whole = np.nan_to_num(np.trunc(value.astype(np.float64)))
    lanes.write(one.operands[0], whole.astype(np.int64), active)


def _float(lanes: Lanes, operand: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]] | None:
    word = lanes.word(operand)
    return None if word is None else word.astype(np.uint32).view(np.float32)


def exchange(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """SHFL: what another lane has is data."""
    lanes.set_flag(one.operands[0], ALL, active)
    lanes.write(one.operands[1], None, active)


def elect(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """ELECT: the first active lane."""
    first = np.zeros(WARP, dtype=np.bool_)
    first[int(np.argmax(active))] = True
    for name in one.operands:
        if is_predicate(name):
            lanes.set_flag(name, first, active)


def spill(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """STL: registers that are put aside."""
    place = lanes.address(one.operands[0])
    if place is None:
        lanes.local.clear()
        return
    for number in range(_registers(one)):
        word = lanes.word(register_after(one.operands[1], number))
        lanes.local[int(place[int(np.argmax(active))]) + 4 * number] = word


def refill(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """LDL: registers that were put aside."""
    place = lanes.address(one.operands[1])
    for number in range(_registers(one)):
        at = None if place is None else int(place[int(np.argmax(active))]) + 4 * number
        word = None if at is None else lanes.local.get(at)
        lanes.write(register_after(one.operands[0], number), word, active)


def forget(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """Any other operation: what it writes is not known. An arrival that is tried for has come."""
    for name in one.operands[:2]:
        match = re.match(r"U?P\d", name)
        if match is not None:
            lanes.set_flag(match[0], ALL if one.operation == "SYNCS" else None, active)
        elif is_register(name):
            for place in range(_registers(one)):
                lanes.write(register_after(name, place), None, active)
            return


def _registers(one: Instruction) -> int:
    """Return how many registers an operation writes, at most."""
    if one.operation.endswith("MMA") and one.operation != "HFMA2":
        return _MATRIX_REGISTERS
    if "128" in one.modifiers:
        return 4
    is_double = one.operation.startswith("D") or "64" in one.modifiers
    return 2 if is_double else 1


EFFECTS: dict[str, Effect] = {
    **INTEGERS,
    **dict.fromkeys(("MOV", "UMOV"), move),
    **dict.fromkeys(("LDC", "ULDC", "LDCU"), load_constant),
    "R2UR": to_uniform,
    "CS2R": zero,
    "HFMA2": packed_constant,
    **dict.fromkeys(("I2F", "I2FP"), to_float),
    "MUFU": reciprocal,
    "F2I": to_integer,
    "SHFL": exchange,
    "ELECT": elect,
    "STL": spill,
    "LDL": refill,
}
"""Effects by operation; all others `forget`."""
