"""tcgen05 of PTX as C++: products in tensor memory, what tells an mbarrier of them, and the rest.

Source:
    https://docs.nvidia.com/cuda/parallel-thread-execution/, sections 9.7.16.10 and 9.7.16.11.
"""

import re

from .handlers import Handler
from .ptx_text import PtxInstruction
from .tensor_memory import IMMEDIATE, of_tensor_memory, tensor_address, unknown
from .values import Values, elements

_KINDS = {"kind::f16": "kF16", "kind::tf32": "kTf32", "kind::f8f6f4": "kF8f6f4", "kind::i8": "kI8"}
_HALVED = ("kF16", "kTf32")
"""The kinds that may halve the sums before."""
_SCALED = {
    "kind::mxf8f6f4": {"": 1, "scale_vec::1X": 1, "block32": 1},
    "kind::mxf4": {"": 2, "scale_vec::2X": 2, "block32": 2},
    "kind::mxf4nvf4": {"scale_vec::2X": 2, "block32": 2, "scale_vec::4X": 4, "block16": 4},
}
"""The kinds whose factors have scales, with the number of each row by what says it."""
_COPIES: dict[tuple[str, ...], tuple[int, int]] = {
    ("128x256b",): (128, 256),
    ("128x128b",): (128, 128),
    ("64x128b", "warpx2::02_13"): (64, 128),
    ("64x128b", "warpx2::01_23"): (64, 128),
    ("32x128b", "warpx4"): (32, 128),
}
"""Rows of tcgen05.cp, and the bits of each."""
_COLLECTOR = re.compile(r"collector::a::(?:fill|use|lastuse|discard)")
_MOST_HALVINGS = 15


def _tcgen05(one: PtxInstruction, values: Values) -> str:
    """tcgen05 of one block, but for products of sparse matrices."""
    match one.modifiers, one.operands:
        case ("mma", "cta_group::1", kind, *hints), (d, a, b, instruction, *rest) if kind in _KINDS:
            if len(hints) > 1 or not all(_COLLECTOR.fullmatch(hint) for hint in hints):
                raise unknown(one)
            fields = _sums(one, values, _KINDS[kind], rest)
            return _product(values, (d, a, b, instruction), fields)
        case ("mma", "cta_group::1", kind, "block_scale", *hints), (
            d,
            a,
            b,
            instruction,
            *rest,
        ) if kind in _SCALED:
            fields = _scales(one, values, (kind, hints), rest)
            return _product(values, (d, a, b, instruction), fields)
        case ("cp", "cta_group::1", *shape), (to, source) if tuple(shape) in _COPIES:
            return _copy(values, tuple(shape), to, source)
        case ("commit", "cta_group::1", "mbarrier::arrive::one", *words, "b64"), (barrier, *mask):
            return _commit(one, values, (words, barrier, mask))
        case _:
            return of_tensor_memory(one, values)


def _product(values: Values, matrices: tuple[str, str, str, str], fields: list[str]) -> str:
    """Return the product of two matrices; `fields`: what it has beside them, the kind first."""
    d, a, b, instruction = matrices
    kind, accumulates, halvings, *rest = fields
    shared = not a.startswith("[")
    given = [
        f".kind = kopt_sim::TensorKind::{kind}",
        f".a_is_shared = {'true' if shared else 'false'}",
        f".accumulates = {accumulates}",
        f".halvings = {halvings}",
        f".d = {tensor_address(d, values)}",
        f".a = {values.read(a, 'u64') if shared else tensor_address(a, values)}",
        f".b = {values.read(b, 'u64')}",
        f".instruction = {values.read(instruction, 'u32')}",
        *rest,
    ]
    made = f"const kopt_sim::TensorProduct kopt_ptx_product{{{', '.join(given)}}};"
    return f"{{ {made} kopt_sim_tensor_product(&kopt_ptx_product); }}"


def _sums(one: PtxInstruction, values: Values, kind: str, rest: list[str]) -> list[str]:
    """Return what a product without scales does with D."""
    disabled = ["0"] * 4
    if rest and rest[0].startswith("{"):
        disabled, rest = elements(rest[0]), rest[1:]
    if len(disabled) != 4 or not 1 <= len(rest) <= 1 + (kind in _HALVED):
        raise unknown(one)
    halvings = rest[1] if len(rest) > 1 else "0"
    if not IMMEDIATE.fullmatch(halvings) or int(halvings) > _MOST_HALVINGS:
        raise unknown(one)
    lanes = ", ".join(values.read(mask, "b32") for mask in disabled)
    return [kind, values.predicate(rest[0]), halvings, f".disabled = {{{lanes}}}"]


def _scales(
    one: PtxInstruction, values: Values, what: tuple[str, list[str]], rest: list[str]
) -> list[str]:
    """Return what a product with scales has beside its matrices."""
    kind, hints = what
    if hints and _COLLECTOR.fullmatch(hints[-1]):
        hints = hints[:-1]
    count = _SCALED[kind].get(hints[0] if hints else "", 0)
    if len(hints) > 1 or count == 0 or len(rest) != 3:
        raise unknown(one)
    of_a, of_b, accumulates = rest
    return [
        f"k{kind.removeprefix('kind::').capitalize()}",
        values.predicate(accumulates),
        "0",
        f".scales = {count}",
        f".scale_a = {tensor_address(of_a, values)}",
        f".scale_b = {tensor_address(of_b, values)}",
    ]


def _copy(values: Values, shape: tuple[str, ...], to: str, source: str) -> str:
    rows, bits = _COPIES[shape]
    given = [
        f".rows = {rows}",
        f".bits = {bits}",
        f".pairs_next = {'true' if 'warpx2::01_23' in shape else 'false'}",
        f".address = {tensor_address(to, values)}",
        f".source = {values.read(source, 'u64')}",
    ]
    made = f"const kopt_sim::TensorCopy kopt_ptx_copy{{{', '.join(given)}}};"
    return f"{{ {made} kopt_sim_tensor_copy(&kopt_ptx_copy); }}"


def _commit(one: PtxInstruction, values: Values, given: tuple[list[str], str, list[str]]) -> str:
    words, barrier, mask = given
    match words, mask:
        case [], []:
            return f"kopt_sim_tensor_commit({values.generic(barrier, 'void*')}, ~0u, __LINE__);"
        case ["shared::cluster"], []:
            return f"kopt_sim_tensor_commit({values.shared(barrier)}, ~0u, __LINE__);"
        case ["shared::cluster", "multicast::cluster"], [targets]:
            blocks = values.read(targets, "u16")
            return f"kopt_sim_tensor_commit({values.shared(barrier)}, {blocks}, __LINE__);"
        case _:
            raise unknown(one)


TENSOR_MEMORY: dict[str, Handler] = {"tcgen05": _tcgen05}
"""Handlers by opcode."""
