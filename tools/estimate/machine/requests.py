"""What a warp's access asks of the memory: sectors of 32 bytes, passes over the shared banks."""

from dataclasses import dataclass

import numpy as np

from .instructions import Instruction
from .lanes import WARP, Flags, Lanes, Words

SECTOR_SHIFT = 5
_BANKS = 32
_BANK_SHIFT = 2
_BANK_BYTES = 4
_WIDTHS = {"256": 32, "128": 16, "64": 8, "U16": 2, "S16": 2, "U8": 1, "S8": 1}
_UNKNOWN = 1 << 60
"""Sectors from here on stand for places that hang on data: each is a place of its own."""
_LOCAL = 1 << 59
"""Sectors from here on are of the threads' own memory."""
_LOCAL_SHIFT, _WORD_SECTORS = 17, 4
_LOCAL_MASK = (4 << _LOCAL_SHIFT) - 1
GLOBAL = frozenset({"LDG", "LD", "LDGSTS", "STG", "ST", "ATOM", "ATOMG", "REDG", "RED"})
SHARED = frozenset({"LDS", "LDSM", "STS", "STSM", "ATOMS"})
LOCAL = frozenset({"LDL", "STL"})


@dataclass(frozen=True)
class WarpAccess:
    """One access of one warp."""

    sectors: tuple[int, ...] = ()
    """Numbers of the 32-byte sectors of global memory, each once."""
    passes: int = 1
    """Times that the shared memory is gone through."""
    least: int = 1
    """The fewest sectors, or passes, in which the same bytes could be had."""
    bytes: int = 0
    """What the lanes of the warp ask for together."""
    lane_bytes: int = _BANK_BYTES
    """What one lane asks for."""


def access_of(lanes: Lanes, one: Instruction, active: Flags, serial: int) -> WarpAccess | None:
    """Return what an instruction asks of the memory; None if it is no access.

    Args:
        lanes: As they are before it.
        one: The instruction.
        active: The lanes that take part.
        serial: Of this access in its warp, for sectors that are not known.
    """
    if one.operation not in GLOBAL | SHARED | LOCAL:
        return None
    width = next((_WIDTHS[name] for name in one.modifiers if name in _WIDTHS), _BANK_BYTES)
    if one.operation in LOCAL:
        return _local_access(lanes, one, width)
    texts = [name for name in one.operands if "[" in name]
    to_shared = one.operation == "LDGSTS"  # where it goes to stands first, to sm_89 in one operand
    text = texts[-1 if to_shared else 0] if texts else None
    place = None if text is None else lanes.address(text)
    count = int(active.sum())
    if place is None:  # as if lanes stood side by side
        if one.operation in SHARED:
            passes = max(1, width * count // (_BANKS * _BANK_BYTES))
            return WarpAccess((), passes, passes, width * count, width)
        number = max(1, width * count >> SECTOR_SHIFT)
        sectors = tuple(_UNKNOWN + serial * WARP + place for place in range(number))
        return WarpAccess(sectors, 1, number, width * count, width)
    distinct = np.unique(place[active]).size * width
    if one.operation in SHARED:
        least = -(-distinct // (_BANKS * _BANK_BYTES))
        return WarpAccess((), _passes(place[active], width), least, width * count, width)
    sectors = _sectors(place[active], width)
    return WarpAccess(sectors, 1, -(-distinct >> SECTOR_SHIFT), width * count, width)


def _local_access(lanes: Lanes, one: Instruction, width: int) -> WarpAccess:
    """Return an access to the threads' own memory: the word of each lane stands beside the next's.

    Its sectors are those of the warp alone, none where the address is not known.
    """
    passes = max(1, width // _BANK_BYTES)
    text = next(name for name in one.operands if "[" in name)
    place = lanes.address(text)
    if place is None:
        return WarpAccess((), passes, passes, 0, width)
    first = ((int(place[0]) & _LOCAL_MASK) >> _BANK_SHIFT) + (lanes.warp << _LOCAL_SHIFT)
    sectors = range(_LOCAL + first * _WORD_SECTORS, _LOCAL + (first + passes) * _WORD_SECTORS)
    return WarpAccess(tuple(sectors), passes, passes, 0, width)


def _sectors(places: Words, width: int) -> tuple[int, ...]:
    ends = np.concatenate([places, places + width - 1]) >> SECTOR_SHIFT
    return tuple(np.unique(ends).tolist())


def _passes(places: Words, width: int) -> int:
    """Return the passes: of the words in one bank each takes its own, equal ones together.

    Wide accesses are served by halves or quarters of the warp.
    """
    words = max(1, width // _BANK_BYTES)
    total = 0
    for group in np.array_split(places >> _BANK_SHIFT, words):
        distinct = np.unique(group[:, None] + np.arange(words))
        if distinct.size:
            total += int(np.bincount(distinct % _BANKS, minlength=_BANKS).max())
    return max(1, total)
