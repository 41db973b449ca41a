"""Whether a kernel only reads what lies in module scope: tables, the library's or its own.

Constant bank 4 holds the addresses of module-scope objects in global memory. They are followed from
there through the registers, along every branch: additions and moves carry an address on, loads
end it. A store, an atomic operation, or anything else that a table has no need of, through an
address or of one, may keep state between launches. What cannot be followed counts as that, too.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

_REGISTER = re.compile(r"\bU?R\d+\b")
_NUMBER = re.compile(r"(U?R)(\d+)")
_TARGET = re.compile(r"(?:^|,)(0x[0-9a-f]+)$")
_BRACKETS = re.compile(r"\[[^\]]*\]")
_BANK = "c[0x4]"
_SLOT = re.compile(r"c\[0x4\]\[(U?RZ|0x[0-9a-f]+)\]")
_INSTRUCTION_BYTES = 16
_CARRYING = re.compile(
    r"U?(IADD\w*|IMAD|LEA|MOV|SEL|SHF|LOP3|PRMT|ISETP|VIADD)$|R2UR$|S2UR$|LDCU?$|ULDC$|IADD64$"
)
_LOADS = frozenset({"LDG", "LD"})
_NO_RESULT = re.compile(
    r"ST|RED|ATOM|BRA|BSSY|BSYNC|BREAK|EXIT|BAR|WARPSYNC|NOP|MEMBAR|DEPBAR|CALL"
)
_JUMPS = frozenset({"BRA", "BSSY", "CALL"})
_UNFOLLOWED = frozenset({"BRX", "BRXU", "JMX", "JMXU", "JMP", "LEPC", "RPCMOV"})


LIBRARY_TABLE = "__cudart_"
"""How the names of libdevice's tables begin."""
_NAMING = re.compile(rf"asm|{LIBRARY_TABLE}|##|\\[uU]")
_SPLICE = re.compile(r"\\[ \t]*\r?\n")


def may_name_library(source: str) -> bool:
    """Return whether a source may have a name like those of the library's tables, or use one."""
    return _NAMING.search(_SPLICE.sub("", source)) is not None


@dataclass(frozen=True)
class PlacedInstruction:
    """One instruction, as nvdisasm prints it."""

    predicated: bool
    opcode: str
    operands: str

    @property
    def base(self) -> str:
        """The opcode without what follows its first dot."""
        return self.opcode.partition(".")[0]


Registers = frozenset[str]


@dataclass(frozen=True)
class AddressBank:
    """What of the addresses in constant bank 4 no kernel can use to keep state."""

    library: frozenset[int] = frozenset()
    """Places of the CUDA library's own tables, of which sinf() has one, for a source that does not
    name them."""
    asserts: bool = False
    """Whether the one function that can be called by its address is that of failed assertions."""


PLAIN_BANK = AddressBank()
"""That of a module of which nothing is known."""


def writes_module_scope(code: Sequence[PlacedInstruction], bank: AddressBank) -> bool:
    """Return whether a kernel may do more with module-scope objects than load from them.

    Args:
        code: Of the kernel and of what it calls.
        bank: Of its module.
    """
    code = [_harmless(one, bank) for one in code]
    if not any(_BANK in one.operands for one in code):
        return False
    if any(one.base in _UNFOLLOWED for one in code):
        return True
    returns = [place + 1 for place, one in enumerate(code) if one.base == "CALL"]
    starts = [place + 1 for place, one in enumerate(code) if one.base in ("RET", "EXIT", "BRA")]
    merges = [_target(one) for one in code if one.base == "BSSY"]
    tainted: list[Registers | None] = [None] * len(code)
    waiting: list[tuple[int, Registers]] = [(0, frozenset())]
    while waiting:
        place, given = waiting.pop()
        if place >= len(code):
            continue
        before = tainted[place]
        if before is not None and given <= before:
            continue
        now = given | (before or frozenset())
        tainted[place] = now
        one = code[place]
        after = _after(one, now)
        if after is None:
            return True
        following = _successors(one, place, (returns, starts), merges)
        if following is None:
            return True
        waiting += [(next_place, after) for next_place in following]
    return False


def _after(one: PlacedInstruction, tainted: Registers) -> Registers | None:
    """Return the registers that hold addresses after an instruction; None where one escapes."""
    result, sources = _result_and_sources(one)
    uses = not tainted.isdisjoint(sources)
    if one.base in _LOADS:
        return tainted - result
    carries = uses or _BANK in one.operands
    if carries and not _CARRYING.match(one.base):
        return None
    if carries:
        return tainted | result
    return tainted if one.predicated else tainted - result


def _harmless(one: PlacedInstruction, bank: AddressBank) -> PlacedInstruction:
    """Return an instruction without addresses that need not be followed."""
    if bank.asserts and one.base == "LEPC":
        return replace(one, opcode="NOP", operands="")
    if bank.asserts and one.opcode.startswith("CALL.ABS"):  # it does not return
        return replace(one, opcode="EXIT", operands="")

    def kept(found: re.Match[str]) -> str:
        place = 0 if found[1].endswith("RZ") else int(found[1], 16)
        return "c[0x0][0x0]" if place in bank.library else found[0]

    return replace(one, operands=_SLOT.sub(kept, one.operands))


def _result_and_sources(one: PlacedInstruction) -> tuple[Registers, Registers]:
    """Return the registers that an instruction writes and those that it reads.

    An address in brackets takes two. A result of unknown width counts as two where it takes an
    address, and as one where it ends one.
    """
    head, _, rest = one.operands.partition(",")
    names = _REGISTER.findall(one.operands)
    if _NO_RESULT.match(one.base) or not _REGISTER.fullmatch(head):
        address = _widened(_REGISTER.findall("".join(_BRACKETS.findall(one.operands))), 2)
        return frozenset(), address | _widened(names, _width(one.opcode))
    width = _width(one.opcode)
    return _widened([head], width), _widened(_REGISTER.findall(rest), 2 if "[" in rest else 1)


def _width(opcode: str) -> int:
    """Return how many registers a value takes."""
    words = {"64": 2, "128": 4, "256": 8, "WIDE": 2}
    return max(words.get(word, 1) for word in opcode.split("."))


def _widened(names: Sequence[str], width: int) -> Registers:
    found = [match for match in map(_NUMBER.fullmatch, names) if match is not None]
    return frozenset(f"{m[1]}{int(m[2]) + more}" for m in found for more in range(width))


def _target(one: PlacedInstruction) -> int | None:
    found = _TARGET.search(one.operands)
    return None if found is None else int(found[1], 16) // _INSTRUCTION_BYTES


def _successors(
    one: PlacedInstruction,
    place: int,
    functions: tuple[Sequence[int], Sequence[int]],
    merges: Sequence[int | None],
) -> list[int] | None:
    """Return the places that may run next; None if they cannot be told.

    Args:
        one: The instruction.
        place: Where it stands.
        functions: Where calls may return to, and where called functions may begin.
        merges: Where branches may meet again.
    """
    returns, starts = functions
    if one.base == "EXIT":
        return [place + 1] if one.predicated else []
    if one.base == "RET":
        return [*returns, place + 1] if one.predicated else list(returns)
    if one.base == "BSYNC":
        return None if None in merges else [place + 1, *(m for m in merges if m is not None)]
    if one.base not in _JUMPS:
        return [place + 1]
    target = _target(one)
    if one.base == "CALL" and target is None:
        return [*starts, place + 1] if one.operands.startswith(("$", "`")) else None
    if target is None:
        return None
    is_only_way = one.base == "BRA" and not one.predicated and "," not in one.operands
    return [target] if is_only_way else [target, place + 1]
