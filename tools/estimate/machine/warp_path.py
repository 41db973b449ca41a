"""The way of one warp through its machine code: which instructions, how often, on which addresses.

Lanes that part at a branch go on one after the other, those at the lowest address first, and so
meet again. A branch or an end that hangs on data is not taken: what is rare stands behind branches.
One that comes again and again is taken at last, so that every way ends.
"""

from dataclasses import dataclass, field

import numpy as np

from .instructions import INSTRUCTION_BYTES, Instruction
from .lanes import ALL, WARP, Flags, Lanes
from .moves import EFFECTS, Place, forget
from .requests import WarpAccess, access_of

MAX_VISITS = 60_000
"""Instructions of one warp that are followed; a longer way is cut there."""
_PATIENCE = 64
_ENDED = 1 << 40
_SPECIAL = frozenset({"S2R", "S2UR"})


@dataclass(frozen=True)
class Visit:
    """One instruction that a warp came to."""

    index: int
    """Of the instruction in its kernel."""
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
    visits: list[Visit] = field(default_factory=list[Visit])
    is_cut: bool = False
    """Whether the way was longer than is followed, or went where no code is known."""
    _seen: dict[int, int] = field(default_factory=dict[int, int])
    _returns: list[int] = field(default_factory=list[int])

    def follow(self) -> "WarpPath":
        """Go to the end and return itself."""
        at = {one.address: number for number, one in enumerate(self.code)}
        counters = np.where(self.present, 0, _ENDED)
        while (address := int(counters.min())) < _ENDED:
            index = at.get(address)
            if index is None or len(self.visits) >= MAX_VISITS:
                self.is_cut = True
                break
            here = counters == address
            taken, target = self._step(index, here)
            counters = np.where(here, address + INSTRUCTION_BYTES, counters)
            if target is not None:
                counters = np.where(taken, target, counters)
        return self

    def _step(self, index: int, here: Flags) -> tuple[Flags, int | None]:
        """Carry out one instruction; return the lanes that leave the order, and for where."""
        one = self.code[index]
        active = here & self._guard(one, one.guard) if one.guard else here
        match one.operation:
            case "EXIT":
                target: int | None = _ENDED
            case "BRA":
                for name in one.operands[:-1]:
                    active = active & self._guard(one, name)
                target = _ENDED if one.target == one.address else one.target
            case "CALL":
                self._returns.append(one.address + INSTRUCTION_BYTES)
                target = one.target
            case "RET":
                target = self._returns.pop() if self._returns else _ENDED
            case _:
                self._carry_out(index, one, active)
                return active, None
        self.visits.append(Visit(index, int(here.sum())))
        return active, target

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
            EFFECTS.get(one.operation, forget)(self.lanes, one, active)
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
        self._seen[one.address] = times
        return np.full(WARP, times > _PATIENCE, dtype=np.bool_)
