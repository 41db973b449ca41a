"""Tensor memory of PTX as C++: tcgen05.alloc and its like, .ld, .st, their waits, and fences.

Source:
    https://docs.nvidia.com/cuda/parallel-thread-execution/, sections 9.7.16.7 and 9.7.16.8.
"""

import re

from .ptx_text import PtxError, PtxInstruction
from .values import Values, elements

_SHAPES = {"32x32b": 1, "16x64b": 1, "16x128b": 2, "16x256b": 4, "16x32bx2": 1}
"""The shapes of tcgen05.ld and .st, with the registers that each has at .x1."""
_MOST_REGISTERS = 128
_NUMBERS = {f"x{1 << power}": 1 << power for power in range(8)}
IMMEDIATE = re.compile(r"[0-9]{1,9}")
"""A number in the text of an instruction."""


def of_tensor_memory(one: PtxInstruction, values: Values) -> str:
    """Return an instruction of tensor memory that is no product, copy or commit."""
    match one.modifiers, one.operands:
        case ("alloc", "cta_group::1", "sync", "aligned", *space, "b32"), (to, columns):
            return _allocation(one, values, (space, to, columns))
        case ("dealloc", "cta_group::1", "sync", "aligned", "b32"), (address, columns):
            given = f"{values.read(address, 'u32')}, {values.read(columns, 'u32')}"
            return f"kopt_sim_tensor_free({given}, __LINE__);"
        case ("relinquish_alloc_permit", "cta_group::1", "sync", "aligned"), ():
            return "kopt_sim_tensor_relinquish(__LINE__);"
        case ("wait::ld" | "wait::st" as what, "sync", "aligned"), ():
            stores = "true" if what == "wait::st" else "false"
            return f"kopt_sim_tensor_wait({stores}, __LINE__);"
        case (("fence::before_thread_sync" | "fence::after_thread_sync" as what),), ():
            return f"kopt_sim_tensor_fence({'true' if 'after' in what else 'false'});"
        case ("ld", "sync", "aligned", shape, number, *pack, "b32"), (to, address, *split):
            count, code = _move(one, values, (shape, number, pack, address, split))
            taken = " ".join(
                values.write(register, f"kopt_ptx_got[{n}]")
                for n, register in enumerate(_registers(one, to, count))
            )
            return f"{{ std::uint32_t kopt_ptx_got[{count}]; {code} {taken} }}"
        case ("st", "sync", "aligned", shape, number, *pack, "b32"), (address, *split, source):
            count, code = _move(one, values, (shape, number, pack, address, split))
            given = ", ".join(
                values.read(register, "b32") for register in _registers(one, source, count)
            )
            return f"{{ std::uint32_t kopt_ptx_got[] = {{{given}}}; {code} }}"
        case _:
            raise unknown(one)


def unknown(one: PtxInstruction) -> PtxError:
    """Return what is raised for a form that is not known."""
    return PtxError(f"{one.opcode}.{'.'.join(one.modifiers)}")


def tensor_address(operand: str, values: Values) -> str:
    """Return the address in tensor memory that brackets hold, with its offset of columns.

    Raises:
        PtxError: It is none.
    """
    match = re.fullmatch(r"\[([^\[\]+]+?)(?:\+([0-9]{1,9}))?\]", operand)
    if match is None:
        raise PtxError(f"{operand} is no address in tensor memory")
    return f"{values.read(match[1], 'u32')} + {match[2] or '0'}u"


def _allocation(one: PtxInstruction, values: Values, given: tuple[list[str], str, str]) -> str:
    space, to, columns = given
    if space == ["shared::cta"]:
        place = values.shared(to)
    elif space == []:
        place = values.generic(to, "void*")
    else:
        raise unknown(one)
    return f"kopt_sim_tensor_allocate({place}, {values.read(columns, 'u32')}, __LINE__);"


def _move(
    one: PtxInstruction, values: Values, given: tuple[str, str, list[str], str, list[str]]
) -> tuple[int, str]:
    """Return the registers that a lane moves, and the call that moves them."""
    shape, number, pack, address, split = given
    stores = one.modifiers[0] == "st"
    packs = ["unpack::16b" if stores else "pack::16b"]
    count = _SHAPES.get(shape, 0) * _NUMBERS.get(number, 0)
    is_split = [bool(IMMEDIATE.fullmatch(text)) for text in split] == [True] * (shape == "16x32bx2")
    if not 0 < count <= _MOST_REGISTERS or pack not in ([], packs) or not is_split:
        raise unknown(one)
    fields = [
        f".shape = kopt_sim::TensorShape::k{shape}",
        f".registers = {count}",
        f".packed = {'true' if pack else 'false'}",
        f".is_store = {'true' if stores else 'false'}",
        f".address = {tensor_address(address, values)}",
        f".split = {split[0] if split else '0'}",
        ".values = kopt_ptx_got",
    ]
    made = f"const kopt_sim::TensorMove kopt_ptx_move{{{', '.join(fields)}}};"
    return count, f"{made} kopt_sim_tensor_move(&kopt_ptx_move, __LINE__);"


def _registers(one: PtxInstruction, operand: str, count: int) -> list[str]:
    found = elements(operand)
    if len(found) != count:
        raise unknown(one)
    return found
