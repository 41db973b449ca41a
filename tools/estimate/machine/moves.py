"""What moves, conversions and special registers do, and which registers any other write forgets."""

from dataclasses import dataclass

import numpy as np

from .instructions import Instruction
from .integers import INTEGERS, Effect
from .lanes import (
    ALL,
    LANES,
    MASK,
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

_ANY_WIDTH = frozenset(
    {"LDC", "ULDC", "LDCU", "LDL", "STL", "CS2R", "SHF", "USHF", "IADD", "UIADD"}
)
_WIDE = frozenset({"64", "S64", "U64"})
_NARROW = frozenset({"U8", "S8", "U16", "S16"})
_PREDICATES = tuple(f"P{number}" for number in range(7))
_MATRIX_REGISTERS = 128


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
    """LDC, ULDC, LDCU: one, two or four words of a constant bank; a part of one is not known."""
    if one.modifiers & _NARROW:
        forget(lanes, one, active)
        return
    name, source = one.operands[0], one.operands[1]
    count = _registers(one)
    if count == 1:
        lanes.write(name, lanes.word(source), active)
        return
    keys = lanes.constant_keys(source)
    for place in range(count):
        word = None if keys is None else lanes.constant(keys + 4 * place)
        lanes.write(register_after(name, place), word, active)


def to_uniform(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """R2UR: the word of the first active lane."""
    forget(lanes, one, active)
    if one.modifiers:
        return
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
    is_half = not any("BF16" in name for name in one.modifiers)
    if not is_half or len(one.operands) < 5 or one.operands[2] != "RZ":
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
    if word is None or not one.modifiers <= {"F32", "S32", "U32", "RP"}:
        forget(lanes, one, active)
        return
    if "U32" not in one.modifiers:
        word = signed(word)
    value = word.astype(np.float32)
    if "RP" in one.modifiers:
        rounded_down = value.astype(np.float64) < word
        value = np.where(rounded_down, np.nextafter(value, np.float32(np.inf)), value)
    lanes.write(one.operands[0], value.astype(np.float32).view(np.uint32).astype(np.int64), active)


def reciprocal(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """MUFU.RCP, the only special function that an address hangs on."""
    value = _float(lanes, one.operands[1])
    if value is None or one.modifiers != frozenset({"RCP"}):
        forget(lanes, one, active)
        return
    with np.errstate(all="ignore"):
        found = (np.float32(1) / value).astype(np.float32)
    lanes.write(one.operands[0], found.view(np.uint32).astype(np.int64), active)


def to_integer(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """F2I to 32 bits, towards zero; what is too large is the largest."""
    value = _float(lanes, one.operands[1])
    is_known = "TRUNC" in one.modifiers and one.modifiers <= {"FTZ", "NTZ", "TRUNC", "S32", "U32"}
    if value is None or not is_known:
        forget(lanes, one, active)
        return
    least, most = (0, MASK) if "U32" in one.modifiers else (-(1 << 31), (1 << 31) - 1)
    whole = np.clip(np.nan_to_num(np.trunc(value.astype(np.float64))), least, most)
    lanes.write(one.operands[0], whole.astype(np.int64), active)


def _float(lanes: Lanes, operand: str) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]] | None:
    word = lanes.word(operand) if is_register(operand) else None
    return None if word is None else word.astype(np.uint32).view(np.float32)


def elect(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """ELECT: the first active lane."""
    forget(lanes, one, active)
    first = np.zeros(WARP, dtype=np.bool_)
    first[int(np.argmax(active))] = True
    lanes.set_flag(one.operands[0], first, active)


def unpack_flags(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """R2P: predicates from the bits of a register."""
    del one
    for name in _PREDICATES:
        lanes.set_flag(name, None, active)


def spill(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """STL: registers that are put aside."""
    place = _common(lanes.address(one.operands[0]), active)
    if place is None:
        lanes.local.clear()
        return
    if one.modifiers & _NARROW:
        lanes.local[place & ~3] = None
        return
    for number in range(_registers(one)):
        word = lanes.word(register_after(one.operands[1], number))
        lanes.local[place + 4 * number] = word


def refill(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """LDL: registers that were put aside."""
    place = _common(lanes.address(one.operands[1]), active)
    is_known = place is not None and not one.modifiers & _NARROW
    for number in range(_registers(one)):
        word = lanes.local.get((place or 0) + 4 * number) if is_known else None
        lanes.write(register_after(one.operands[0], number), word, active)


def _common(words: Words | None, active: Flags) -> int | None:
    """Return the word that all active lanes have; None where they differ."""
    found = np.empty(0) if words is None else np.unique(words[active])
    return int(found[0]) if found.size == 1 else None


def forget(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """Any other operation: what it writes is not known. An arrival that is tried for has come."""
    left = 0 if "SETP" in one.operation else 2 if "256" in one.modifiers else 1
    for name in one.operands:
        if is_predicate(name):
            flag = name.lstrip("!")
            lanes.set_flag(flag, ALL if one.operation == "SYNCS" else None, active)
        elif is_register(name) and left:
            left -= 1
            for place in range(_registers(one)):
                lanes.write(register_after(name, place), None, active)
        else:
            return


def _registers(one: Instruction) -> int:
    """Return how many registers an operation writes, at most."""
    if one.operation.endswith("MMA") or one.operation == "LDTM":
        return _MATRIX_REGISTERS
    if one.operation == "LDSM" or one.modifiers & {"128", "256"}:
        return 4
    is_double = one.operation == "LEPC" or one.operation.startswith("D")
    return 2 if is_double or any(name.endswith("64") for name in one.modifiers) else 1


def effect_of(one: Instruction) -> Effect:
    """Return what an instruction does; of arithmetic on 64 bits the result is not known."""
    if one.modifiers & _WIDE and one.operation not in _ANY_WIDTH:
        return forget
    return EFFECTS.get(one.operation, forget)


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
    "ELECT": elect,
    "R2P": unpack_flags,
    "STL": spill,
    "LDL": refill,
}
"""Effects by operation, for 32 bits; all others `forget`."""
