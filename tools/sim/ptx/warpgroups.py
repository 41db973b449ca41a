"""wgmma of PTX as C++: one call that all threads of a warpgroup meet at.

The registers of a product's sums are handed over by address: they are written when it is waited
for, long after the statement.

Source:
    https://docs.nvidia.com/cuda/parallel-thread-execution/, section 9.7.15.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .handlers import Handler
from .ptx_text import PtxError, PtxInstruction, PtxLabel
from .values import Values, elements

_SHAPE = re.compile(r"m64n(\d+)k(\d+)")
_OPERAND = re.compile(r"%\d+")
_MOST_COLUMNS = 256
_OF_INTEGERS = frozenset({8, 24, *range(16, 256, 16), 32, 256})


@dataclass(frozen=True)
class _Factors:
    """What A and B may hold, and what the sums may be then."""

    depth: int
    """The k of the shape: 32 bytes."""
    sums: tuple[str, ...]
    scales: bool = True
    """Whether A and B have a sign each."""
    transposes: bool = False


_FP8 = _Factors(32, ("f32", "f16"))
_INTEGERS = _Factors(32, ("s32",), scales=False)
_FACTORS = {
    "f16": _Factors(16, ("f32", "f16"), transposes=True),
    "bf16": _Factors(16, ("f32",), transposes=True),
    "tf32": _Factors(8, ("f32",)),
    **dict.fromkeys(("e4m3", "e5m2"), _FP8),
    **dict.fromkeys(("s8", "u8"), _INTEGERS),
}


def sums_of(steps: Iterable[PtxInstruction | PtxLabel]) -> frozenset[str]:
    """Return the operands of a statement that a product writes after it."""
    return frozenset(
        register
        for one in steps
        if isinstance(one, PtxInstruction) and one.opcode == "wgmma" and one.operands
        for register in elements(one.operands[0])
        if "mma_async" in one.modifiers
    )


def sums_place(operand: str) -> str:
    """Return the name of the C++ reference to an operand that `sums_of` names."""
    return f"kopt_ptx_place_{operand[1:]}"


def _wgmma(one: PtxInstruction, values: Values) -> str:
    """wgmma, dense: products, their fence, groups and waits."""
    match one.modifiers, one.operands:
        case ("fence", "sync", "aligned"), ():
            return "kopt_sim_warpgroup_fence(__LINE__);"
        case ("commit_group", "sync", "aligned"), ():
            return "kopt_sim_warpgroup_commit(__LINE__);"
        case ("wait_group", "sync", "aligned"), (left,):
            return f"kopt_sim_warpgroup_wait({values.read(left, 'u32')}, __LINE__);"
        case ("mma_async", "sync", "aligned", shape, *how, sums, a, b), _:
            return _product(one, values, shape, ([*how], sums, a, b))
        case _:
            raise _unknown(one)


def _product(
    one: PtxInstruction, values: Values, shape: str, kinds: tuple[list[str], str, str, str]
) -> str:
    how, sums, a, b = kinds
    factors, size = _FACTORS.get(a), _SHAPE.fullmatch(shape)
    if factors is None or size is None or _FACTORS.get(b) is not factors:
        raise _unknown(one)
    columns = int(size[1])
    is_shape = columns % 8 == 0 and 0 < columns <= _MOST_COLUMNS and int(size[2]) == factors.depth
    is_way = how == [] or (how == ["satfinite"] and not factors.scales)
    is_size = factors.scales or columns in _OF_INTEGERS
    if not (is_shape and is_size and is_way and sums in factors.sums):
        raise _unknown(one)
    if a != b and a in ("f16", "bf16", "tf32"):
        raise _unknown(one)
    registers, left, right, *rest = one.operands
    places = elements(registers)
    in_registers = left.startswith("{")
    count = 1 + 2 * factors.scales + factors.transposes * (1 if in_registers else 2)
    if len(rest) != count or len(places) != columns // (4 if sums == "f16" else 2):
        raise _unknown(one)
    if not all(_OPERAND.fullmatch(place) for place in places) or len(set(places)) != len(places):
        raise PtxError("sums that are no operands of the statement")
    scales = [values.read(text, "s32") for text in rest[1:3]] if factors.scales else ["1", "1"]
    turns = [values.read(text, "u32") for text in rest[3:]] if factors.transposes else []
    given = [
        f".code = kopt_sim::mma_code({factors.depth}, {_elements(a, b, sums)},"
        f" {'true' if how else 'false'})",
        f".columns = {columns}",
        ".sums = kopt_ptx_sums",
        f".a = {'0' if in_registers else values.read(left, 'u64')}",
        f".b = {values.read(right, 'u64')}",
        f".a_registers = {_joined(left, values) if in_registers else '0'}",
        f".a_is_shared = {'false' if in_registers else 'true'}",
        f".accumulates = {_scale_of_sums(rest[0], values)}",
        f".negates_a = {scales[0]} < 0",
        f".negates_b = {scales[1]} < 0",
        f".transposes_a = {f'{turns[0]} != 0' if turns and not in_registers else 'false'}",
        f".transposes_b = {f'{turns[-1]} != 0' if turns else 'false'}",
    ]
    kept = ", ".join(f"&{sums_place(place)}" for place in places)
    return (
        f"{{ void* const kopt_ptx_sums[] = {{{kept}}};"
        f" const kopt_sim::WarpgroupProduct kopt_ptx_product{{{', '.join(given)}}};"
        " kopt_sim_warpgroup_product(&kopt_ptx_product, __LINE__); }"
    )


def _elements(*kinds: str) -> str:
    return ", ".join(f"kopt_sim::Element::k{kind.capitalize()}" for kind in kinds)


def _joined(registers: str, values: Values) -> str:
    parts = elements(registers)
    if len(parts) != 4:
        raise PtxError(f"A of {len(parts)} registers")
    return f"kopt_sim::ptx_joined({', '.join(values.read(part, 'b32') for part in parts)})"


def _scale_of_sums(operand: str, values: Values) -> str:
    """Return whether the sums go on from what they hold: a predicate, or a number."""
    if operand.lstrip("!") in values.predicates:
        return values.predicate(operand)
    return f"{values.read(operand, 'u32')} != 0"


def _unknown(one: PtxInstruction) -> PtxError:
    return PtxError(f"wgmma.{'.'.join(one.modifiers)}")


WARPGROUPS: dict[str, Handler] = {"wgmma": _wgmma}
"""Handlers by opcode."""
