"""Registers and predicates of the 32 lanes of a warp, as far as they are known.

What depends on data is not known: None. Where lanes write under a predicate, the others keep what
they had; of an unknown register they then have 0, which no lane reads that was not meant to.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]
"""A 32-bit word of each lane, 0 to 2**32 - 1."""
Flags = npt.NDArray[np.bool_]
"""A truth value of each lane."""

WARP = 32
MASK = 0xFFFFFFFF
LANES: Words = np.arange(WARP, dtype=np.int64)
ALL: Flags = np.ones(WARP, dtype=np.bool_)
_REGISTER = re.compile(r"(U?R)(\d+|Z)")
_CONSTANT = re.compile(r"c\[0x([0-9a-f]+)\](\[[^\]]+\])")
_PREDICATE = re.compile(r"!?U?P[\dT]")
_SCALES = {"": 1, "64": 1, "U32": 1, "X4": 4, "X8": 8, "X16": 16}
"""What a register of an address counts for, by its suffix."""


def is_predicate(operand: str) -> bool:
    """Return whether an operand is a predicate, negated or not."""
    return _PREDICATE.fullmatch(operand) is not None


def is_register(operand: str) -> bool:
    """Return whether an operand is a plain register."""
    return _REGISTER.fullmatch(operand) is not None


def filled(value: int) -> Words:
    """Return the same word in each lane."""
    return np.full(WARP, value & MASK, dtype=np.int64)


def signed(words: Words) -> Words:
    """Return words as integers of two's complement."""
    return np.where(words >= 1 << 31, words - (1 << 32), words)


def constant_key(bank: int, offset: int) -> int:
    """Return the number by which a word of a constant bank is known; `offset` is in bytes."""
    return bank << 32 | offset


def register_after(name: str, place: int) -> str:
    """Return the register `place` after `name`: R6 for R4 and 2; RZ stays RZ."""
    match = _REGISTER.match(name)
    if match is None or match[2] == "Z":
        return name
    return f"{match[1]}{int(match[2]) + place}"


@dataclass
class Lanes:
    """The state of one warp."""

    constants: Mapping[int, int]
    """Words of the constant banks by `constant_key`."""
    warp: int = 0
    """Number of the warp in its block."""
    local: dict[int, Words | None] = field(default_factory=dict[int, "Words | None"])
    """Words of local memory by address, which is the same in each lane."""
    _words: dict[str, Words | None] = field(default_factory=dict[str, "Words | None"])
    _flags: dict[str, Flags | None] = field(default_factory=dict[str, "Flags | None"])

    def word(self, operand: str) -> Words | None:
        """Return what a 32-bit operand holds: a register, a constant, a number; None if unknown."""
        sign, text = "", operand
        if text[:1] in "-~":
            sign, text = text[0], text[1:]
        is_absolute = text.startswith("|")
        value = self._plain(text.strip("|"))
        if value is None:
            return None
        if is_absolute:
            value = value & 0x7FFFFFFF
        if sign:
            value = (~value if sign == "~" else -value) & MASK
        return value

    def _plain(self, text: str) -> Words | None:
        if _CONSTANT.fullmatch(text):
            keys = self.constant_keys(text)
            return None if keys is None else self.constant(keys)
        register = _REGISTER.fullmatch(text)
        if register is not None:
            return filled(0) if register[2] == "Z" else self._words.get(register[0])
        try:
            return filled(int(text, 0))
        except ValueError:
            return _as_float(text)

    def constant_keys(self, operand: str) -> Words | None:
        """Return which constant each lane reads of `c[0x0][0x228]` or `c[0x2][R4+0xc]`.

        None for other operands, and where a register that is not known chooses it.
        """
        constant = _CONSTANT.fullmatch(operand)
        offsets = None if constant is None else self.address(constant[2])
        if constant is None or offsets is None:
            return None
        return constant_key(int(constant[1], 16), 0) + (offsets & MASK)

    def constant(self, keys: Words) -> Words | None:
        """Return the constant of each lane; None if one is unknown."""
        first = self.constants.get(int(keys[0]))
        if first is None or (keys == keys[0]).all():  # mostly all lanes read the same
            return None if first is None else filled(first)
        found = [self.constants.get(key) for key in keys.tolist()]
        return None if None in found else np.array(found, dtype=np.int64)

    def double(self, operand: str) -> Words | None:
        """Return the 64 bits of a pair of registers or constants; None if one is unknown."""
        keys = self.constant_keys(operand)
        if keys is not None:
            low, high = (self.constant(keys + 4 * place) for place in range(2))
            return None if low is None or high is None else low | high << 32
        register = _REGISTER.fullmatch(operand)
        if register is None:
            return None if operand[:1] in "-~" else self.word(operand)
        lower, upper = self.word(register[0]), self.word(register_after(register[0], 1))
        return None if lower is None or upper is None else lower | upper << 32

    def flag(self, operand: str) -> Flags | None:
        """Return a predicate; None if unknown."""
        name = operand.lstrip("!")
        value = ALL if name in ("PT", "UPT") else self._flags.get(name)
        if value is None:
            return None
        return ~value if operand.startswith("!") else value

    def write(self, name: str, value: Words | None, active: Flags) -> None:
        """Write a register in the active lanes; a uniform one has one value for all."""
        if name in ("RZ", "URZ"):
            return
        if value is None:
            self._words[name] = None
            return
        value = value & MASK
        if name.startswith("U") or bool(active.all()):
            self._words[name] = value
            return
        before = self._words.get(name)
        self._words[name] = np.where(active, value, 0 if before is None else before)

    def write_double(self, name: str, value: Words | None, active: Flags) -> None:
        """Write 64 bits to a pair of registers."""
        self.write(name, None if value is None else value & MASK, active)
        upper = None if value is None else value >> 32 & MASK
        self.write(register_after(name, 1), upper, active)

    def set_flag(self, name: str, value: Flags | None, active: Flags) -> None:
        """Write a predicate in the active lanes."""
        if name in ("PT", "UPT"):
            return
        if value is not None and not name.startswith("U") and not bool(active.all()):
            before = self._flags.get(name)
            value = np.where(active, value, False if before is None else before)
        self._flags[name] = value

    def address(self, operand: str) -> Words | None:
        """Return the address in `[R4+0x10]`, `desc[UR4][R8.64]` or `[R2.64+UR6]`."""
        inner = operand[operand.rindex("[") + 1 : operand.rindex("]")]
        total = np.zeros(WARP, dtype=np.int64)
        for sign, part in re.findall(r"([+-]?)([^+-]+)", inner):
            name, _, suffix = part.partition(".")
            is_wide = suffix == "64" or (part.startswith("UR") and ".64" in inner)
            value = self.double(name) if is_wide else self.word(name)
            if value is None or suffix not in _SCALES:
                return None
            value = value * _SCALES[suffix]
            total = total - value if sign == "-" else total + value
        return total


def _as_float(text: str) -> Words | None:
    try:
        return filled(int(np.float32(float(text)).view(np.uint32)))
    except ValueError:
        return None
