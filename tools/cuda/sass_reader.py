"""Instruction counts straight from the machine code, for kernels of which every opcode is known.

nvdisasm takes 0.35 s to start, as long as the rest of a compile; this takes a millisecond. It is no
disassembler: it knows the operation of an instruction word, the width of a global access and the
formats of a conversion, on compute capability 9.0 and 10.0, and answers only if nothing in the
module asks for a closer look. An unknown opcode, a constant bank or a special register beyond the
harmless ones, a descriptor of memory that is not plainly the driver's: nvdisasm decides.

An instruction has 16 bytes. Bits 0 to 11 are the operation, bits 54 to 58 the bank of a constant
load, bits 72 to 79 the special register of S2R and its kin, bits 73 to 75 the width of a global
access. No other operation of the table can have a constant operand. Bits 38 on (37 of LDCU) are
the offset of a constant load, bits 16 to 23 the destination, bits 84 to 86 the priority in L1 and,
of accesses of 32 bytes, bits 81 and 82 that in L2.

Source: the output of `nvdisasm -hex` of CUDA 13.2, over sources that use each operation; the tests
hold this table against nvdisasm.
"""

import re
import struct
from collections.abc import Mapping

from .cubin import CubinFacts
from .sass import SassFunction, sass_function
from .sass_operands import ConstantSlots, constant_slots, conversion_opcode

_KNOWN_ARCHS = re.compile(r"sm_(90|100)[af]?")

# Operation and its opcodes, which differ by the kind of operands. Left out on purpose: traps,
# sleeps and absolute calls.
_OPERATIONS = """
ACQBULK 82e / ARRIVES 9b0 / ATOM 38a 98a 9a2 / ATOMG 3a9 9a3 9a8 / ATOMS 38d 58d 98c f8c /
B2R 31c / BAR 31d b1d / BRA 547 947 / BREAK 942 / BREV 301 / BRX 949 / BSSY 945 / BSYNC 941 /
CALL 944 / CCTL 98f / CGAERRBAR 5ab / CREDUX 2cc / CS2R 805 / DADD 229 429 / DEPBAR 91a /
DFMA 22b 42b 82b c2b e2b / DMMA 23f / DMUL 228 828 c28 / DSETP 22a e2a / ELECT 82f /
ENDCOLLECTIVE 91b / ERRBAR 9ab / EXIT 94d / F2F 304 310 / F2FP 23e / F2I 305 311 /
FADD 221 421 / FADD2 24b / FCHK 302 / FENCE 3c6 / FFMA 223 423 823 e23 / FFMA2 249 /
FLO 300 d00 / FMNMX 209 809 / FMNMX3 276 / FMUL 220 820 c20 / FMUL2 24a / FRND 307 /
FSEL 208 808 / FSET 20a 80a / FSETP 20b 80b / HADD2 230 / HFMA2 231 235 431 435 831 835 /
HGMMA 9f0 / HMMA 23c / HMNMX2 240 / HSET2 433 / HSETP2 234 434 / I2F 306 312 d06 d12 /
I2FP 245 c45 / IABS 213 / IADD3 210 810 c10 / IDP 226 /
IMAD 224 225 227 424 824 825 827 c24 c25 c27 e24 e25 / IMMA 237 / ISETP 20c 80c c0c / LD 980 /
LDC b82 / LDCU 7ac / LDG 97e 981 / LDGDEPBAR 9af / LDGSTS fae / LDL 983 / LDS 984 / LDSM 83b /
LEA 211 811 c11 / LEPC 94e / LOP3 212 812 c12 / MATCH 3a1 / MEMBAR 992 / MOV 202 802 c02 /
MUFU 308 908 / NOP 918 / P2R 803 / PLOP3 81c / POPC 309 d09 / PREEXIT 82d / PRMT 216 816 /
QSPC 3aa / R2P 804 / R2UR 2ca / REDG 98e 9a6 / REDUX 3c4 / RET 950 / S2R 919 / S2UR 9c3 /
SEL 207 807 / SGXT 81a / SHF 219 419 819 / SHFL 389 589 989 f89 / ST 985 / STG 97f 986 /
STL 387 / STS 388 988 / STSM 844 / SYNCS 5a7 5b2 9a7 9b1 / UBLKCP 3ba /
UBLKRED 3bb / UCGABAR_ARV 9c7 / UCGABAR_WAIT dc7 / UFLO 2bd / UIADD3 290 890 /
UIMAD 2a4 2a5 8a5 / UISETP 28c 88c / ULDC ab9 abb / ULEA 291 / ULOP3 892 / UMOV 882 c82 /
UPOPC 2bf / UPRMT 896 / USEL 287 / USHF 899 / UTMACCTL 9b9 / UTMACMDFLUSH 9b7 / UTMALDG 5b4 /
UTMASTG 3b5 / VABSDIFF 214 / VIADD 836 c36 / VIADDMNMX 246 446 846 / VIMNMX 248 848 /
VOTE 806 / VOTEU 886 / WARPGROUP 9c5 / WARPSYNC 348 948 / YIELD 946
"""
_OPERATION_BITS = 0xFFF
_WIDTHS = ("U8", "S8", "U16", "S16", "32", "64", "128")
_WIDE_ACCESSES = {0x97E: "LDG.256", 0x97F: "STG.256"}
_CONSTANT_LOADS = frozenset({"LDC", "LDCU", "ULDC"})
# Parameters, the kernel's own jump tables, and __constant__ variables; 4 is the address bank.
_HARMLESS_BANKS = frozenset({0, 2, 3})
# Where the number of the descriptor's register stands, 6 bits. A copy by a TMA unit has a
# descriptor only if bit 76 is set; that is left to nvdisasm.
_DESCRIPTOR_BITS: Mapping[str, int] = {
    **dict.fromkeys(("LD", "LDG"), 32),
    **dict.fromkeys(("ATOM", "ATOMG", "LDGSTS", "REDG", "ST", "STG"), 64),
}
_BY_TMA = ("UBLK", "UTMA")
_TO_UNIFORM = re.compile(r"U(?!BLK|TMA|CGABAR|ISETP)|LDCU|R2UR|S2UR|CREDUX|VOTEU")
_HAS_DESCRIPTOR_BIT = ("LD", "ST")  # bit 76, as of copies by a TMA unit
_WIDE_SUM = 1 << 14  # HADD2.F32, which makes one fp32 value
_ZERO_REGISTER = 0xFF
_SWAP_FORMS = 3  # compare-and-swap, whose opcodes begin with 3, names none
_LDCU = 0x7AC
_FIRST_OUT_L1, _KEEP_L1 = 0, 2
_FIRST_OUT_L2, _NORMAL_L2 = 0, 1
_REGISTER_READS = frozenset({"S2R", "S2UR", "CS2R"})
# Lane, thread and block indices, the shared window, the lane mask, SM and cluster ids, zero.
_HARMLESS_REGISTERS = frozenset(
    {0x00, 0x03, 0x21, 0x22, 0x23, 0x25, 0x26, 0x27, 0x2F, 0x39, 0x43, 0x88, 0x8A, 0xFF}
)


def read_instructions(facts: CubinFacts, arch: str) -> tuple[SassFunction, ...] | None:
    """Return the functions of a cubin; None if nvdisasm must decide.

    What it returns is what `sass.disassemble` would: no function in it has anything that the
    screen asks about.
    """
    known = _KNOWN_ARCHS.fullmatch(arch)
    if not known:
        return None
    slots = constant_slots(int(known[1]) // 10)
    opcodes = _opcodes()
    functions: list[SassFunction] = []
    for name, code in facts.code.items():
        operations = _operations(code, opcodes, slots)
        if operations is None:
            return None
        while operations and operations[-1] == "NOP":
            operations.pop()
        functions.append(sass_function(name, operations))
    return tuple(functions)


def _operations(code: bytes, opcodes: Mapping[int, str], slots: ConstantSlots) -> list[str] | None:
    operations: list[str] = []
    descriptors: set[int] = set()  # uniform registers that hold the driver's, by place in the code
    for low, high in struct.iter_unpack("<QQ", code):
        opcode = low & _OPERATION_BITS
        operation = opcodes.get(opcode)
        if operation is None:
            return None
        if operation in _CONSTANT_LOADS and not _is_harmless_load(low, slots):
            return None
        if not _has_plain_caching(operation, opcode, (low, high), descriptors):
            return None
        if _TO_UNIFORM.match(operation):
            _follow_write(operation, (low, high), slots, descriptors)
        if operation in _REGISTER_READS and (high >> 8) & 0xFF not in _HARMLESS_REGISTERS:
            return None
        modified = _modified(operation, (low, high))
        if modified is None:
            return None
        operations.append(modified)
    return operations


def _modified(operation: str, word: tuple[int, int]) -> str | None:
    """Return an operation with what counts tell apart: width, formats, stores that stream."""
    low, high = word
    opcode = low & _OPERATION_BITS
    if operation == "F2FP":
        return conversion_opcode(high)
    if operation == "HADD2":
        return "HADD2.F32" if high & _WIDE_SUM else operation
    if operation == "HFMA2":
        return "MOV" if (low >> 24) & 0xFF == _ZERO_REGISTER else operation
    if operation not in ("LDG", "STG"):
        return operation
    width = (high >> 9) & 7
    if opcode not in _WIDE_ACCESSES and width >= len(_WIDTHS):
        return None
    streams = operation == "STG" and (high >> 20) & 7 == _FIRST_OUT_L1
    access = _WIDE_ACCESSES.get(opcode) or f"{operation}.{_WIDTHS[width]}"
    return f"{access}.EF" if streams else access


def _constant(low: int) -> tuple[int, int]:
    """Return bank and offset of a constant load."""
    first = 37 if low & _OPERATION_BITS == _LDCU else 38
    return (low >> 54) & 0x1F, (low >> first) & 0xFFFF


def _follow_write(
    operation: str, word: tuple[int, int], slots: ConstantSlots, descriptors: set[int]
) -> None:
    """Bring up to date which pairs of uniform registers hold the driver's descriptor."""
    low, high = word
    first = (low >> 16) & 0xFF
    descriptors -= set(range(first - 1, first + _registers(operation, high)))
    if operation in _CONSTANT_LOADS and _constant(low) == (0, slots.descriptor):
        descriptors.add(first)


def _registers(operation: str, high: int) -> int:
    """Return how many uniform registers an operation writes, at most."""
    if operation in _CONSTANT_LOADS:
        return {5: 2, 6: 4}.get((high >> 9) & 7, 1)
    return 2 if operation == "UIMAD" else 1


def _is_harmless_load(low: int, slots: ConstantSlots) -> bool:
    bank, offset = _constant(low)
    return bank in _HARMLESS_BANKS and (bank, offset) != (0, slots.constant_address)


def _has_plain_caching(
    operation: str, opcode: int, word: tuple[int, int], descriptors: set[int]
) -> bool:
    """Return whether an instruction asks nothing of the caches but to evict its data early."""
    low, high = word
    if operation.startswith(_BY_TMA):
        return not (high >> 12) & 1
    if operation == "CCTL":  # with an address, it fetches ahead or sets a priority
        return not (high >> 8) & 1
    place = _DESCRIPTOR_BITS.get(operation)
    if place is None or opcode >> 8 == _SWAP_FORMS:
        return True
    if operation in _HAS_DESCRIPTOR_BIT and not (high >> 12) & 1:
        return True
    if opcode in _WIDE_ACCESSES and (high >> 17) & 3 not in (_FIRST_OUT_L2, _NORMAL_L2):
        return False
    register = ((low | high << 64) >> place) & 0x3F
    return (high >> 20) & 7 != _KEEP_L1 and register in descriptors


def _opcodes() -> dict[int, str]:
    """Return the operation of each known opcode."""
    table: dict[int, str] = {}
    for entry in _OPERATIONS.replace("\n", " ").split("/"):
        operation, *codes = entry.split()
        table.update((int(code, 16), operation) for code in codes)
    return table


_GLOBAL_LOADS = frozenset({0x981, 0x97E})  # LDG, and its form of 256 bits a thread
_NO_SCOREBOARD = 7
_SET_SHIFT = 110 - 64
_WAIT_SHIFT = 116 - 64


def loads_in_flight(code: bytes, arch: str) -> int | None:
    """Return the most global loads that one thread has under way before it first waits for one.

    None if the scheduling bits of `arch` are not known. An instruction whose result comes late
    names one of six scoreboards, and the first use of the result waits for that scoreboard. This
    walks through the code in its order, not along its branches: a loop that the compiler pipelines
    shows as its prologue. Of the 16 bytes of an instruction, bits 110 to 112 are the scoreboard
    that is set (7: none), bits 116 to 121 the mask of those that are waited for.

    Source: Jia et al., "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking", 2018,
    section 2.1; the same in compute capability 9.0 and 10.0.
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
