"""The way of one warp through its machine code: which instructions, how often, on which addresses.

Lanes that part at a branch go on one after the other, those at the lowest address first, and so
meet again. A branch or an end that hangs on data is not taken: what is rare stands behind branches.
One that goes around a call is: what is called there is the slow path of a division, a square root
or their like, for operands that are hardly ever met. What comes again and again goes the other way
each 64th time, so that a wait for data ends.
"""

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .instructions import INSTRUCTION_BYTES, Instruction
from .lanes import ALL, MASK, WARP, Flags, Lanes, Words
from .moves import Place, effect_of, forget
from .requests import WarpAccess, access_of

MAX_VISITS = 60_000
"""Instructions of one warp that are followed; a longer way is cut there."""
_PATIENCE = 64
_ENDED = 1 << 40
_NOWHERE = -1
_BY_TABLE = frozenset({"BRX", "BRXU"})
_BY_REGISTER = frozenset({"JMX", "JMXU", "JMP"})
_SPECIAL = frozenset({"S2R", "S2UR"})


@dataclass(frozen=True)
class Visit:
    """One instruction that a warp came to."""

    index: int
    """The place of the instruction in its kernel."""
    active: int
    """Lanes that took part; 0: its predicate held for none."""
    access: WarpAccess | None = None


@dataclass
class WarpPath:
    """A warp on its way."""

    code: tuple[Instruction, ...]
    lanes: Lanes
    place: Place
    present: Flags
    """The lanes that have a thread."""
    takes_branches: bool = False
    """Whether a branch ahead that depends on data is taken, not passed by."""
    visits: list[Visit] = field(default_factory=list[Visit])
    is_cut: bool = False
    """Whether the way was longer than is followed, or went where no code is known."""
    has_open_loop: bool = False
    """Whether a loop ended where data would say: how often it is gone through is not known."""
    _seen: dict[int, int] = field(default_factory=dict[int, int])

    def follow(self, most: int = MAX_VISITS) -> "WarpPath":
        """Go to the end, or for `most` instructions, and return itself."""
        at = {one.address: number for number, one in enumerate(self.code)}
        counters = np.where(self.present, 0, _ENDED)
        while (address := int(counters.min())) < _ENDED:
            index = at.get(address)
            if index is None or len(self.visits) >= most:
                self.is_cut = True
                break
            here = counters == address
            taken, target = self._step(index, here)
            counters = np.where(here, address + INSTRUCTION_BYTES, counters)
            if target is not None:
                counters = np.where(taken, target, counters)
        return self

    def _step(self, index: int, here: Flags) -> tuple[Flags, int | Words | None]:
        """Carry out one instruction; return the lanes that leave the order, and for where."""
        one = self.code[index]
        active = here & self._guard(one, one.guard) if one.guard else here
        match one.operation:
            case "EXIT":
                target: int | Words | None = _ENDED
            case "BRA" if "DIV" in one.modifiers:  # for lanes that have parted, rarely
                active, target = ~ALL, None
            case "BRA":
                for name in one.operands[:-1]:
                    active = active & self._guard(one, name)
                target = _ENDED if one.target == one.address else one.target
            case "CALL" | "RET":
                target = self._called(one)
            case operation if operation in _BY_TABLE:
                target = self._chosen(one)
            case operation if operation in _BY_REGISTER:
                target = _NOWHERE
            case _:
                self._carry_out(index, one, active)
                return active, None
        self.visits.append(Visit(index, int(here.sum())))
        return active, target

    def _called(self, one: Instruction) -> int | Words:
        """Return where a call or a return leads to, by a register that is known if by one."""
        if one.target is None or "ABS" in one.modifiers:
            return _NOWHERE
        if len(one.operands) == 1:
            return one.target
        word = self.lanes.word(one.operands[0])
        return _NOWHERE if word is None else word + one.target

    def _chosen(self, one: Instruction) -> int | Words:
        """Return where a `switch` leads to: a word of its table, counted from the next address."""
        word = self.lanes.word(one.operands[0])
        if word is None or one.target is None:
            return _NOWHERE
        return (word + one.address + INSTRUCTION_BYTES + one.target) & MASK

    def _carry_out(self, index: int, one: Instruction, active: Flags) -> None:
        count = int(active.sum())
        if count == 0:
            self.visits.append(Visit(index, 0))
            return
        access = access_of(self.lanes, one, active, len(self.visits))
        if one.operation in _SPECIAL:
            self.lanes.write(one.operands[0], self.place.special(one.operands[1]), active)
        else:
            self._take_effect(one, active)
        self.visits.append(Visit(index, count, access))

    def _take_effect(self, one: Instruction, active: Flags) -> None:
        """Carry out what is known; of operands in an unknown form the result is forgotten."""
        try:
            effect_of(one)(self.lanes, one, active)
        except (ValueError, IndexError, KeyError):
            forget(self.lanes, one, active)

    def _guard(self, one: Instruction, name: str) -> Flags:
        """Return where a predicate holds; an unknown one of a branch or end does not, at first."""
        known = self.lanes.flag(name)
        if known is not None:
            return known
        if one.operation not in ("BRA", "EXIT"):
            return ALL
        times = self._seen.get(one.address, 0) + 1
        goes_back = one.target is not None and one.target <= one.address
        self.has_open_loop |= goes_back or times == _PATIENCE
        self._seen[one.address] = times
        is_taken = (times % _PATIENCE == 0) != self._goes_around_call(one)
        if self.takes_branches and one.operation == "BRA" and not goes_back:
            is_taken = not is_taken
        return np.full(WARP, is_taken, dtype=np.bool_)

    def _goes_around_call(self, one: Instruction) -> bool:
        """Return whether the code that a branch ahead leaves out calls a function."""
        if one.operation != "BRA" or one.target is None:
            return False
        left_out = range(one.address + INSTRUCTION_BYTES, one.target, INSTRUCTION_BYTES)
        return any(address in self._calls for address in left_out)

    @cached_property
    def _calls(self) -> frozenset[int]:
        """The addresses of calls."""
        return frozenset(other.address for other in self.code if other.operation == "CALL")
