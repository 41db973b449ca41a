"""Arithmetic of PTX as C++: integers, floats, packed halves and pairs of floats.

Denormal numbers are kept, with `.ftz` too; approximate functions are as exact as the CPU's.

Source:
    https://docs.nvidia.com/cuda/parallel-thread-execution/, sections 9.7.1 to 9.7.5.
"""

from .handlers import Handler, only, operands, type_of
from .ptx_text import PtxError, PtxInstruction
from .values import BITS, INTEGERS, TYPES, Values

_PACKED = ("f16", "bf16", "f16x2", "bf16x2")
_PLAIN = {"add": "+", "sub": "-", "mul": "*"}
_ROUNDED = {"add": "__fadd_rn", "sub": "__fsub_rn", "mul": "__fmul_rn"}
_HALVES = {
    **{"add": "__hadd", "sub": "__hsub", "mul": "__hmul", "fma": "__hfma"},
    **{"min": "__hmin", "max": "__hmax", "abs": "__habs", "neg": "__hneg"},
}
_APPROXIMATE = {
    **{"ex2": "exp2f", "lg2": "__log2f", "rcp": "__frcp_rn", "rsqrt": "rsqrtf", "sqrt": "sqrtf"},
    **{"sin": "__sinf", "cos": "__cosf", "tanh": "__tanhf"},
}


def _of_two(one: PtxInstruction, values: Values) -> str:
    """add, sub, mul."""
    kind = type_of(one)
    to, *sources = operands(one, 3)
    if kind == "f32x2":
        raise PtxError(kind)
    a, b = (values.read(text, kind) for text in sources)
    if kind == "f32":
        only(one, "rn", "sat")
        value = f"{_ROUNDED[one.opcode]}({a}, {b})"
        return values.write(to, f"__saturatef({value})" if "sat" in one.modifiers else value)
    if kind == "f64":
        only(one, "rn")
        return values.write(to, f"{a} {_PLAIN[one.opcode]} {b}")
    if kind in _PACKED:
        only(one, "rn")
        return values.write(to, f"{_half(one.opcode, kind)}({a}, {b})")
    if kind not in INTEGERS:
        raise PtxError(kind)
    if one.opcode != "mul":
        only(one)
        return values.write(to, _wrapped(kind, _PLAIN[one.opcode], a, b))
    return values.write(to, _product(one, kind, a, b))


def _product(one: PtxInstruction, kind: str, a: str, b: str) -> str:
    only(one, "lo", "hi", "wide")
    how = next((word for word in one.modifiers if word in ("lo", "hi", "wide")), "")
    if how == "lo":
        return _wrapped(kind, "*", a, b)
    if how == "hi":
        return f"kopt_sim::ptx_multiply_high({a}, {b})"
    if how == "wide" and BITS[kind] < 64:
        wide = TYPES[f"{kind[0]}{2 * BITS[kind]}"]
        return f"static_cast<{wide}>(static_cast<{wide}>({a}) * static_cast<{wide}>({b}))"
    raise PtxError(f"mul.{how}.{kind}")


def _wrapped(kind: str, sign: str, a: str, b: str) -> str:
    """Return an integer sum, difference or product modulo the width."""
    name = f"std::uint{max(BITS[kind], 32)}_t"
    value = f"static_cast<{name}>({a}) {sign} static_cast<{name}>({b})"
    return f"static_cast<{TYPES[kind]}>({value})"


def _multiply_add(one: PtxInstruction, values: Values) -> str:
    """mad, fma."""
    kind = type_of(one)
    to, *sources = operands(one, 4)
    a, b = (values.read(text, kind) for text in sources[:2])
    if kind in ("f32", "f64"):
        only(one, "rn", "sat")
        c = values.read(sources[2], kind)
        value = f"{'fmaf' if kind == 'f32' else 'fma'}({a}, {b}, {c})"
        return values.write(to, f"__saturatef({value})" if "sat" in one.modifiers else value)
    if kind in _PACKED and one.opcode == "fma":
        only(one, "rn")
        return values.write(to, f"{_half('fma', kind)}({a}, {b}, {values.read(sources[2], kind)})")
    if kind not in INTEGERS or one.opcode != "mad":
        raise PtxError(f"{one.opcode} of type {kind}")
    result = f"{kind[0]}{2 * BITS[kind]}" if "wide" in one.modifiers else kind
    product = _product(one, kind, a, b)
    return values.write(to, _wrapped(result, "+", product, values.read(sources[2], result)))


def _pairwise(one: PtxInstruction, values: Values) -> str:
    """add, mul, fma of type f32x2: two floats in 64 bits."""
    only(one, "rn")
    to, *sources = operands(one, 4 if one.opcode == "fma" else 3)
    name = "fmaf" if one.opcode == "fma" else _ROUNDED[one.opcode]
    read = [f"kopt_sim::ptx_as<float2>({values.bits(text, 'b64')})" for text in sources]
    parts = (", ".join(f"{text}.{part}" for text in read) for part in "xy")
    return values.write(to, f"float2{{{', '.join(f'{name}({part})' for part in parts)}}}")


def _f32x2_or(handler: Handler) -> Handler:
    def chosen(one: PtxInstruction, values: Values) -> str:
        is_pair = bool(one.modifiers) and one.modifiers[-1] == "f32x2"
        return (_pairwise if is_pair else handler)(one, values)

    return chosen


def _extremum(one: PtxInstruction, values: Values) -> str:
    """min, max."""
    kind = type_of(one)
    only(one)
    to, *sources = operands(one, 3)
    a, b = (values.read(text, kind) for text in sources)
    if kind in ("f32", "f64"):
        return values.write(to, f"{'f' + one.opcode}{'f' if kind == 'f32' else ''}({a}, {b})")
    if kind in _PACKED:
        return values.write(to, f"{_half(one.opcode, kind)}({a}, {b})")
    if kind not in INTEGERS:
        raise PtxError(kind)
    return values.write(to, f"({b} {'<' if one.opcode == 'min' else '>'} {a} ? {b} : {a})")


def _of_one(one: PtxInstruction, values: Values) -> str:
    """abs, neg."""
    kind = type_of(one, "s16", "s32", "s64", "f32", "f64", *_PACKED)
    only(one)
    to, source = operands(one, 2)
    a = values.read(source, kind)
    if kind in _PACKED:
        return values.write(to, f"{_half(one.opcode, kind)}({a})")
    if kind.startswith("f"):
        absolute = "fabsf" if kind == "f32" else "fabs"
        return values.write(to, f"-{a}" if one.opcode == "neg" else f"{absolute}({a})")
    negated = _wrapped(kind, "-", f"{TYPES[kind]}{{0}}", a)
    return values.write(to, negated if one.opcode == "neg" else f"({a} < 0 ? {negated} : {a})")


def _half(opcode: str, kind: str) -> str:
    return _HALVES[opcode] + ("2" if kind.endswith("x2") else "")


def _approximate(one: PtxInstruction, values: Values) -> str:
    """ex2, lg2, rcp, rsqrt, sqrt, sin, cos, tanh of a float: as exact as the CPU has them."""
    type_of(one, "f32")
    only(one, "approx", "rn")
    to, source = operands(one, 2)
    return values.write(to, f"{_APPROXIMATE[one.opcode]}({values.read(source, 'f32')})")


ARITHMETIC: dict[str, Handler] = {
    **dict.fromkeys(("add", "sub", "mul"), _f32x2_or(_of_two)),
    "mad": _multiply_add,
    "fma": _f32x2_or(_multiply_add),
    **dict.fromkeys(("min", "max"), _extremum),
    **dict.fromkeys(("abs", "neg"), _of_one),
    **dict.fromkeys(_APPROXIMATE, _approximate),
}
"""Handlers by opcode."""
