"""How many global loads one thread of a kernel has under way before it first waits for one.

Read from the scheduling bits of the machine code: an instruction whose result comes late names one
of six scoreboards, and whoever needs the result waits for that scoreboard. It is a walk through the
code in its order, not along its branches: in a loop whose loads are all waited for within one
iteration that is what happens, and a loop that the compiler pipelines shows as its prologue.

Of the 16 bytes of an instruction, bits 110 to 112 are the scoreboard that is set (7: none), bits
116 to 121 the mask of those that are waited for.

Source: Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018,
section 2.1; the same in compute capability 9.0 and 10.0.
"""

import re
import struct

_KNOWN_ARCHS = re.compile(r"sm_(90|100)[af]?")
_OPERATION_BITS = 0xFFF
_GLOBAL_LOADS = frozenset({0x981, 0x97E})  # LDG, and its form of 256 bits a thread
_NO_SCOREBOARD = 7
_SET_SHIFT = 110 - 64
_WAIT_SHIFT = 116 - 64


def loads_in_flight(code: bytes, arch: str) -> int | None:
    """Return the most global loads under way at any place of `code`; 0 without loads.

    None if the scheduling bits of `arch` are not known.
    """
    if _KNOWN_ARCHS.fullmatch(arch) is None:
        return None
    waiting: dict[int, int] = {}
    most = 0
    for low, high in struct.iter_unpack("<QQ", code):
        mask = (high >> _WAIT_SHIFT) & 0x3F
        waiting = {board: loads for board, loads in waiting.items() if not mask >> board & 1}
        if low & _OPERATION_BITS in _GLOBAL_LOADS:
            board = (high >> _SET_SHIFT) & 7
            if board != _NO_SCOREBOARD:
                waiting[board] = waiting.get(board, 0) + 1
        most = max(most, sum(waiting.values()))
    return most
