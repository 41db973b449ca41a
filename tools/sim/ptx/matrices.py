"""Matrix instructions of a warp as C++: one call that all lanes meet at.

Source:
    https://docs.nvidia.com/cuda/parallel-thread-execution/, section 9.7.14.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from .handlers import Handler, operands
from .ptx_text import PtxError, PtxInstruction
from .values import Values, elements


@dataclass(frozen=True)
class _Factors:
    """What A and B may hold, and what C and D may be then."""

    bits: int
    """The width of an element."""
    shapes: dict[str, int]
    """Their k by name."""
    sums: tuple[str, ...]
    how: tuple[str, ...] = ()
    """Modifiers that may stand behind the layouts."""


_HALVES = {"m16n8k8": 8, "m16n8k16": 16}
_BYTES = {"m16n8k16": 16, "m16n8k32": 32}
_FP8 = _Factors(8, _BYTES, ("f32", "f16"))
_INTEGERS = _Factors(8, _BYTES, ("s32",), ("satfinite",))
_FACTORS = {
    "f16": _Factors(16, _HALVES, ("f32", "f16")),
    "bf16": _Factors(16, _HALVES, ("f32",)),
    "tf32": _Factors(32, {"m16n8k4": 4, "m16n8k8": 8}, ("f32",)),
    "f64": _Factors(64, {"m8n8k4": 4}, ("f64",), ("rn",)),
    **dict.fromkeys(("e4m3", "e5m2"), _FP8),
    **dict.fromkeys(("s8", "u8"), _INTEGERS),
}
_LANES = 32
_NUMBERS = {"x1": 1, "x2": 2, "x4": 4}


def _multiply(one: PtxInstruction, values: Values) -> str:
    """mma.sync.aligned, dense, without scales."""
    match one.modifiers:
        case ("sync", "aligned", shape, "row", "col", *how, d, a, b, c) if a in _FACTORS:
            factors = _FACTORS[a]
        case _:
            raise _unknown(one)
    is_sum = d == c and c in factors.sums
    is_way = how == [] or how in [[way] for way in factors.how]
    if _FACTORS.get(b) is not factors or shape not in factors.shapes or not (is_sum and is_way):
        raise _unknown(one)
    depth, width = factors.shapes[shape], 64 if c == "f64" else 32
    rows, columns = (8 if a == "f64" else 16), 8
    bits = {"f16": 16}.get(c, width)
    counts = [
        area * size // _LANES // width
        for area, size in (
            (rows * columns, bits),
            (rows * depth, factors.bits),
            (columns * depth, factors.bits),
            (rows * columns, bits),
        )
    ]
    parts = [elements(text) for text in operands(one, 4)]
    if [len(part) for part in parts] != counts:
        raise _unknown(one)
    kinds = ", ".join(f"kopt_sim::Element::k{kind.capitalize()}" for kind in (a, b, c))
    saturates = "true" if "satfinite" in how else "false"
    code = f"kopt_sim::mma_code({depth}, {kinds}, {saturates})"
    given = ", ".join(_joined(part, values, width) for part in parts[1:])
    return _handed_out(f"kopt_sim_mma({code}, __LINE__, {given})", parts[0], values, width)


def _unknown(one: PtxInstruction) -> PtxError:
    return PtxError(f"{one.opcode}.{'.'.join(one.modifiers)}")


def _joined(registers: Sequence[str], values: Values, width: int) -> str:
    read = ", ".join(values.read(register, f"b{width}") for register in registers)
    return f"kopt_sim::ptx_joined({read})"


def _handed_out(call: str, registers: Sequence[str], values: Values, width: int = 32) -> str:
    """Return the statement that makes a call and puts the parts of its result into registers."""
    parts = " ".join(
        values.write(register, f"kopt_sim::ptx_part<std::uint{width}_t>(kopt_ptx_got, {number})")
        for number, register in enumerate(registers)
    )
    return f"{{ const auto kopt_ptx_got = {call}; {parts} }}"


def _load(one: PtxInstruction, values: Values) -> str:
    """ldmatrix, of 8x8 matrices of 16-bit elements."""
    code, count = _moved(one, "kLoad")
    to, address = operands(one, 2)
    registers = elements(to)
    if len(registers) != count:
        raise _unknown(one)
    row = values.shared(address, "const void*")
    return _handed_out(f"kopt_sim_load_matrices({code}, __LINE__, {row})", registers, values)


def _store(one: PtxInstruction, values: Values) -> str:
    """stmatrix, of 8x8 matrices of 16-bit elements."""
    code, count = _moved(one, "kStore")
    address, source = operands(one, 2)
    registers = elements(source)
    if len(registers) != count:
        raise _unknown(one)
    given = f"{values.shared(address)}, {_joined(registers, values, 32)}"
    return f"kopt_sim_store_matrices({code}, __LINE__, {given});"


def _moved(one: PtxInstruction, step: str) -> tuple[str, int]:
    """Return the code of ldmatrix or stmatrix, and its number of matrices; words in any order."""
    match one.modifiers:
        case ("sync", "aligned", *words, "b16") if len(words) in (3, 4):
            number = next((word for word in words if word in _NUMBERS), "")
        case _:
            raise _unknown(one)
    how = ["trans"] if len(words) == 4 else []
    space = "shared::cta" if "shared::cta" in words else "shared"
    if sorted(words) != sorted(["m8n8", number, space, *how]):
        raise _unknown(one)
    count = _NUMBERS[number]
    transposed = "true" if how else "false"
    return f"kopt_sim::matrix_code(kopt_sim::MatrixStep::{step}, {count}, {transposed})", count


def _transpose(one: PtxInstruction, values: Values) -> str:
    """Movmatrix."""
    if one.modifiers != ("sync", "aligned", "m8n8", "trans", "b16"):
        raise _unknown(one)
    to, source = operands(one, 2)
    moved = f"kopt_sim_transpose_matrix(__LINE__, {values.read(source, 'b32')})"
    return values.write(to, moved)


MATRICES: dict[str, Handler] = {
    "mma": _multiply,
    "ldmatrix": _load,
    "stmatrix": _store,
    "movmatrix": _transpose,
}
"""Handlers by opcode."""
