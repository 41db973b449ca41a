"""Logic, shifts, bit fields, comparisons and moves of PTX as C++.

Source:
    https://docs.nvidia.com/cuda/parallel-thread-execution/, sections 9.7.1, 9.7.7 to 9.7.9.
"""

from .handlers import Handler, only, operands, type_of
from .ptx_text import PtxError, PtxInstruction
from .values import BITS, INTEGERS, TYPES, Values, elements

_WORDS = ("b16", "b32", "b64")
_COMPARED = {
    **{"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="},
    **{"lo": "<", "ls": "<=", "hi": ">", "hs": ">="},
}
_FLOATS = ("f32", "f64")


def _logic(one: PtxInstruction, values: Values) -> str:
    """and, or, xor, of words and predicates."""
    kind = type_of(one, *_WORDS, "pred")
    only(one)
    to, *sources = operands(one, 3)
    sign = {"and": "&", "or": "|", "xor": "^"}[one.opcode]
    a, b = (values.read(text, kind) for text in sources)
    return values.write(to, f"static_cast<{TYPES[kind]}>({a} {sign} {b})")


def _negation(one: PtxInstruction, values: Values) -> str:
    """Not."""
    kind = type_of(one, *_WORDS, "pred")
    only(one)
    to, source = operands(one, 2)
    sign = "!" if kind == "pred" else "~"
    return values.write(to, f"static_cast<{TYPES[kind]}>({sign}{values.read(source, kind)})")


def _shift(one: PtxInstruction, values: Values) -> str:
    """shl, shr."""
    kind = type_of(one, *_WORDS, *INTEGERS)
    only(one)
    to, source, count = operands(one, 3)
    name = "left" if one.opcode == "shl" else "right"
    words = f"{values.read(source, kind)}, {values.read(count, 'u32')}"
    return values.write(to, f"kopt_sim::ptx_shift_{name}({words})")


def _funnel(one: PtxInstruction, values: Values) -> str:
    """shf.{l,r}.{wrap,clamp}.b32."""
    type_of(one, "b32")
    way, how = one.modifiers[:2] if len(one.modifiers) == 3 else ("", "")
    name = {"wrap": "", "clamp": "c"}.get(how)
    if way not in ("l", "r") or name is None:
        raise PtxError(f"shf.{way}.{how}")
    to, *sources = operands(one, 4)
    words = ", ".join(values.read(text, "u32") for text in sources)
    return values.write(to, f"__funnelshift_{way}{name}({words})")


def _of_words(one: PtxInstruction, values: Values) -> str:
    """lop3, prmt, bfe, bfi, popc, clz, brev."""
    kind = type_of(one, "b32", "b64", "u32", "s32", "u64", "s64")
    only(one)
    to, *sources = operands(one, 2, 4, 5)
    same = [values.read(text, kind) for text in sources]
    counts = [values.read(text, "u32") for text in sources]
    match one.opcode, len(sources), BITS[kind]:
        case "lop3", 4, 32:
            value = f"kopt_sim::ptx_lop3({', '.join(counts)})"
        case "prmt", 3, 32:
            value = f"__byte_perm({', '.join(counts)})"
        case "bfe", 3, _:
            value = f"kopt_sim::ptx_bit_field({same[0]}, {counts[1]}, {counts[2]})"
        case "bfi", 4, _:
            value = f"kopt_sim::ptx_insert({same[0]}, {same[1]}, {counts[2]}, {counts[3]})"
        case (("popc" | "clz" | "brev"), 1, width):
            name = f"__{one.opcode}{'ll' if width == 64 else ''}"
            word = "std::uint64_t" if width == 64 and one.opcode == "brev" else "std::uint32_t"
            value = f"static_cast<{word}>({name}({same[0]}))"
        case _:
            raise PtxError(f"{one.opcode} of {len(sources)} operands")
    return values.write(to, value)


def _compare(one: PtxInstruction, values: Values) -> str:
    """setp.CMP.type: plain and unordered comparisons."""
    kind = type_of(one)
    name = one.modifiers[0]
    to, *sources = operands(one, 3)
    if "|" in to or any(word not in (name, "ftz") for word in one.modifiers[:-1]):
        raise PtxError("setp with two results or a further predicate")
    a, b = (values.read(text, kind) for text in sources)
    is_float = kind in _FLOATS
    unordered = f"({a} != {a} || {b} != {b})"
    if is_float and name in ("num", "nan"):
        return values.write(to, unordered if name == "nan" else f"!{unordered}")
    if is_float and name.endswith("u") and name[:-1] in _COMPARED:
        return values.write(to, f"{unordered} || {a} {_COMPARED[name[:-1]]} {b}")
    if name not in _COMPARED or kind not in (*_WORDS, *INTEGERS, *_FLOATS):
        raise PtxError(f"setp.{name}.{kind}")
    ordered = f" && !{unordered}" if is_float and name == "ne" else ""
    return values.write(to, f"{a} {_COMPARED[name]} {b}{ordered}")


def _select(one: PtxInstruction, values: Values) -> str:
    """Selp."""
    kind = type_of(one, *_WORDS, *INTEGERS, *_FLOATS)
    only(one)
    to, first, second, predicate = operands(one, 4)
    a, b = (values.read(text, kind) for text in (first, second))
    return values.write(to, f"{values.predicate(predicate)} ? {a} : {b}")


def _move(one: PtxInstruction, values: Values) -> str:
    """mov: a value, or a word put together of parts or taken apart."""
    kind = type_of(one)
    only(one)
    to, source = operands(one, 2)
    into, parts = elements(to), elements(source)
    if len(into) == len(parts) == 1:
        return values.write(to, values.read(source, kind))
    if kind not in ("b32", "b64") or (len(into) > 1 and len(parts) > 1):
        raise PtxError(f"mov.{kind} of parts")
    count = max(len(into), len(parts))
    width = BITS[kind] // count
    if count not in (2, 4) or width not in (16, 32):
        raise PtxError(f"mov.{kind} of {count} parts")
    if len(parts) > 1:
        pieces = (
            f"({values.read(p, f'u{width}')} * 1ull << {width * n})" for n, p in enumerate(parts)
        )
        return values.write(to, f"static_cast<{TYPES[kind]}>({' | '.join(pieces)})")
    whole = values.read(source, kind)
    name = TYPES[f"u{width}"]
    return " ".join(
        values.write(part, f"static_cast<{name}>({whole} >> {width * n})")
        for n, part in enumerate(into)
    )


WORDS: dict[str, Handler] = {
    **dict.fromkeys(("and", "or", "xor"), _logic),
    "not": _negation,
    **dict.fromkeys(("shl", "shr"), _shift),
    "shf": _funnel,
    **dict.fromkeys(("lop3", "prmt", "bfe", "bfi", "popc", "clz", "brev"), _of_words),
    "setp": _compare,
    "selp": _select,
    "mov": _move,
}
"""Handlers by opcode."""
