"""What integer instructions do: as much as addresses and branches hang on.

Each function is given the lanes, the instruction and the active lanes. A result is None as soon as
one of its sources is.
"""

from collections.abc import Callable, Sequence

import numpy as np

from .instructions import Instruction
from .lanes import MASK, WARP, Flags, Lanes, Words, filled, is_predicate, signed

Effect = Callable[[Lanes, Instruction, Flags], None]


def _arguments(operands: Sequence[str]) -> tuple[list[str], list[str], list[str]]:
    """Split what follows the destination: predicates written, values, predicates read."""
    places = [place for place, one in enumerate(operands) if not is_predicate(one)]
    if not places:
        return list(operands), [], []
    first, last = places[0], places[-1]
    return list(operands[:first]), list(operands[first : last + 1]), list(operands[last + 1 :])


def _sum(lanes: Lanes, values: Sequence[str], carries: Sequence[str]) -> Words | None:
    """Return a sum of 32-bit words, which may have more bits; `carries` are added."""
    total = np.zeros(WARP, dtype=np.int64)
    for text in values:
        is_number = text.lstrip("-~")[:1].isdigit()
        word = lanes.word(text if is_number else text.lstrip("-~"))
        if word is None:
            return None
        if text[:1] in "-~" and not is_number:
            word = ~word & MASK
            # With a carry read, its 1 is the carry.
            word = word + 1 if text.startswith("-") and not carries else word
        total = total + word
    for carry in carries:
        flag = lanes.flag(carry)
        if flag is None:
            return None
        total = total + flag
    return total


def add(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """IADD3, UIADD3: three words, with carries in and out."""
    written, values, read = _arguments(one.operands[1:])
    total = _sum(lanes, values, read if "X" in one.modifiers else ())
    lanes.write(one.operands[0], total, active)
    for place, flag in enumerate(written):
        lanes.set_flag(flag, None if total is None else total >> 32 > place, active)


def add_two(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """IADD, UIADD, VIADD: two words, or pairs of registers."""
    if "64" not in one.modifiers:
        lanes.write(one.operands[0], _sum(lanes, one.operands[1:3], ()), active)
        return
    first, second = (lanes.double(text) for text in one.operands[1:3])
    known = first is not None and second is not None
    lanes.write_double(one.operands[0], first + second if known else None, active)  # type: ignore[operator]


def multiply_add(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """IMAD and UIMAD: a * b + c; WIDE to a pair of registers, HI its upper half, with c a pair."""
    written, values, read = _arguments(one.operands[1:])
    is_wide, is_high = "WIDE" in one.modifiers, "HI" in one.modifiers
    is_pair = is_wide or is_high
    product = _product(lanes, values[:2], is_signed=is_pair and "U32" not in one.modifiers)
    third = lanes.double(values[2]) if is_pair else lanes.word(values[2])
    carries = _sum(lanes, (), read if "X" in one.modifiers else ())
    total: Words | None = None
    if product is not None and third is not None and carries is not None:
        total = (product if is_pair else product & MASK) + third + carries
    result = total >> 32 if is_high and total is not None else total
    (lanes.write_double if is_wide else lanes.write)(one.operands[0], result, active)
    for flag in written:
        carry = None if total is None or is_pair else total >> 32 > 0
        lanes.set_flag(flag, carry, active)


def _product(lanes: Lanes, factors: Sequence[str], *, is_signed: bool) -> Words | None:
    first, second = (lanes.word(one) for one in factors)
    if "RZ" in factors or "URZ" in factors:
        return filled(0)
    if first is None or second is None:
        return None
    if is_signed:
        return signed(first) * signed(second)
    return (first.astype(np.uint64) * second.astype(np.uint64)).view(np.int64)


def shift_add(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """LEA, ULEA: (a << n) + b; HI the upper half of the shifted pair."""
    written, values, read = _arguments(one.operands[1:])
    shift = int(values[-1], 16)
    low, added = lanes.word(values[0]), lanes.word(values[1])
    shifted = None if low is None else low << shift & MASK
    if "HI" in one.modifiers and low is not None:
        is_extended = "SX32" in one.modifiers
        high = np.where(low >> 31 > 0, MASK, 0) if is_extended else lanes.word(values[2])
        shifted = None if high is None else (high << shift | low >> 32 - shift) & MASK
    carries = _sum(lanes, (), read if "X" in one.modifiers else ())
    total: Words | None = None
    if shifted is not None and added is not None and carries is not None:
        total = shifted + added + carries
    lanes.write(one.operands[0], total, active)
    for flag in written:
        lanes.set_flag(flag, None if total is None else total >> 32 > 0, active)


def logic(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """LOP3, ULOP3: any function of three words, by its table of 8 bits."""
    operands = list(one.operands)
    flag = operands.pop(0) if is_predicate(operands[0]) else None
    sources = [lanes.word(text) for text in operands[1:4]]
    result = _looked_up(sources, int(operands[4], 16))
    lanes.write(operands[0], result, active)
    if flag is not None:
        lanes.set_flag(flag, None if result is None else result != 0, active)


_AND_OF_TWO = 0xC0


def _looked_up(sources: Sequence[Words | None], table: int) -> Words | None:
    first, second, third = sources
    if first is None or second is None or third is None:
        known = [one for one in (first, second) if one is not None]
        is_zero = table == _AND_OF_TWO and any(not one.any() for one in known)
        return filled(0) if is_zero else None
    result = np.zeros(WARP, dtype=np.int64)
    for bits in range(8):
        if table >> bits & 1:
            a = first if bits & 4 else ~first
            b = second if bits & 2 else ~second
            result = result | (a & b & (third if bits & 1 else ~third))
    return result & MASK


def funnel_shift(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """SHF, USHF: a shift of the pair {c, a}, of which one half is kept."""
    low, count, high = (lanes.word(text) for text in one.operands[1:4])
    is_left, keeps_high = "L" in one.modifiers, "HI" in one.modifiers
    needs_low, needs_high = is_left or not keeps_high, not is_left or keeps_high
    if one.modifiers & {"S64", "U64"} and count is not None and bool((count > 32).any()):
        count = None
    if count is None or (needs_low and low is None) or (needs_high and high is None):
        lanes.write(one.operands[0], None, active)
        return
    a = filled(0) if low is None else low
    c = filled(0) if high is None else high
    count = count & 31 if "W" in one.modifiers else np.minimum(count, 32)
    rest = 32 - count
    top = signed(c) if one.modifiers & {"S32", "S64"} else c
    match is_left, keeps_high:
        case True, True:
            result = c << count | np.where(count > 0, a >> rest, 0)
        case True, False:
            result = a << count
        case False, True:
            result = top >> count
        case _:
            result = a >> count | c << rest
    lanes.write(one.operands[0], result & MASK, active)


_COMPARED: dict[str, Callable[[Words, Words], Flags]] = {
    "LT": lambda a, b: a < b,
    "LE": lambda a, b: a <= b,
    "GT": lambda a, b: a > b,
    "GE": lambda a, b: a >= b,
    "EQ": lambda a, b: a == b,
    "NE": lambda a, b: a != b,
    "F": lambda a, _: np.zeros_like(a, dtype=np.bool_),
    "T": lambda a, _: np.ones_like(a, dtype=np.bool_),
}


def compare(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """ISETP, UISETP: a comparison, joined with a predicate; EX goes on with the upper halves."""
    first, second, *values = one.operands
    found = _comparison(lanes, one, values)
    joined = lanes.flag(values[2])
    for name, result in ((first, found), (second, None if found is None else ~found)):
        lanes.set_flag(name, _joined(result, joined, one.modifiers), active)


def _comparison(lanes: Lanes, one: Instruction, values: Sequence[str]) -> Flags | None:
    a, b = lanes.word(values[0]), lanes.word(values[1])
    if a is None or b is None:
        return None
    if "U32" not in one.modifiers:
        a, b = signed(a), signed(b)
    name = next(iter(one.modifiers & _COMPARED.keys()), "T")
    if "EX" not in one.modifiers:
        return _COMPARED[name](a, b)
    lower = lanes.flag(values[3])
    if lower is None:
        return None
    if name in ("EQ", "NE"):
        return np.asarray((a == b) & lower if name == "EQ" else (a != b) | lower)
    strictly = a < b if name in ("LT", "LE") else a > b
    return np.asarray(strictly | ((a == b) & lower))


def _joined(result: Flags | None, other: Flags | None, modifiers: frozenset[str]) -> Flags | None:
    if result is None or other is None:
        return None
    if "OR" in modifiers:
        return result | other
    return result ^ other if "XOR" in modifiers else result & other


def select(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """SEL, USEL: one of two words by a predicate."""
    first, second, flag = (
        lanes.word(one.operands[1]),
        lanes.word(one.operands[2]),
        lanes.flag(one.operands[3]),
    )
    known = first is not None and second is not None and flag is not None
    lanes.write(one.operands[0], np.where(flag, first, second) if known else None, active)  # type: ignore[arg-type]


def extremum(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """IMNMX, VIMNMX: the lesser word where the predicate holds, else the greater.

    Of the three words of VIADDMNMX the first two are added first.
    """
    written, values, read = _arguments(one.operands[1:])
    words = [word for name in values if (word := lanes.word(name)) is not None]
    flag = lanes.flag(read[0])
    for name in written:
        lanes.set_flag(name, None, active)
    if len(words) < len(values) or flag is None:
        lanes.write(one.operands[0], None, active)
        return
    first, second = sum(words[:-1], filled(0)) & MASK, words[-1]
    if "U32" not in one.modifiers:
        first, second = signed(first), signed(second)
    chosen = np.where(flag, np.minimum(first, second), np.maximum(first, second))
    lanes.write(one.operands[0], chosen, active)


def permute(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """PRMT: each byte one of eight, or the sign of one."""
    low, chosen, high = (lanes.word(text) for text in one.operands[1:4])
    if low is None or chosen is None or high is None or one.modifiers:
        lanes.write(one.operands[0], None, active)
        return
    pair = low | high << 32
    result = np.zeros(WARP, dtype=np.int64)
    for place in range(4):
        which = chosen >> 4 * place & 0xF
        byte = pair >> 8 * (which & 7) & 0xFF
        byte = np.where(which & 8, np.where(byte & 0x80, 0xFF, 0), byte)
        result = result | byte << 8 * place
    lanes.write(one.operands[0], result, active)


def magnitude(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """IABS."""
    word = lanes.word(one.operands[1])
    lanes.write(one.operands[0], None if word is None else np.abs(signed(word)), active)


def flag_logic(lanes: Lanes, one: Instruction, active: Flags) -> None:
    """PLOP3: any function of three predicates, and a second one."""
    sources = [lanes.flag(text) for text in one.operands[2:5]]
    for name, table in zip(one.operands[:2], one.operands[5:7], strict=False):
        words = [None if flag is None else flag.astype(np.int64) * MASK for flag in sources]
        result = _looked_up(words, int(table, 16))
        lanes.set_flag(name, None if result is None else result != 0, active)


INTEGERS: dict[str, Effect] = {
    **dict.fromkeys(("IADD3", "UIADD3"), add),
    **dict.fromkeys(("IADD", "UIADD", "VIADD"), add_two),
    **dict.fromkeys(("IMAD", "UIMAD"), multiply_add),
    **dict.fromkeys(("LEA", "ULEA"), shift_add),
    **dict.fromkeys(("LOP3", "ULOP3"), logic),
    **dict.fromkeys(("SHF", "USHF"), funnel_shift),
    **dict.fromkeys(("ISETP", "UISETP"), compare),
    **dict.fromkeys(("SEL", "USEL"), select),
    **dict.fromkeys(("IMNMX", "VIMNMX", "UVIMNMX", "VIADDMNMX"), extremum),
    **dict.fromkeys(("PRMT", "UPRMT"), permute),
    "IABS": magnitude,
    "PLOP3": flag_logic,
}
"""Effects by operation."""
