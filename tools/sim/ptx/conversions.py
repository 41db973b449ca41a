"""Conversions of PTX as C++: between integers, floats, halves, fp8 and TF32.

Source:
    https://docs.nvidia.com/cuda/parallel-thread-execution/, section 9.7.9, cvt.
"""

from .handlers import Handler, operands
from .ptx_text import PtxError, PtxInstruction
from .values import INTEGERS, TYPES, Values, widened

_TO_INTEGER = {"rni": "rn", "rzi": "rz", "rmi": "rd", "rpi": "ru"}
_INTEGER_NAMES = {"s32": "int", "u32": "uint", "s64": "ll", "u64": "ull"}
_FROM_HALF = {"f16": "__half2float", "bf16": "__bfloat162float"}
_TO_HALF = {"f16": "__float2half_rn", "bf16": "__float2bfloat16_rn"}
_PAIRS = {
    "f16x2": "__floats2half2_rn",
    "bf16x2": "__floats2bfloat162_rn",
    "e4m3x2": "__NV_E4M3",
    "e5m2x2": "__NV_E5M2",
}


def _convert(one: PtxInstruction, values: Values) -> str:
    """cvt, between the formats that kernels convert."""
    words = [word for word in one.modifiers if word != "ftz"]
    if len(words) < 2:
        raise PtxError("cvt without two types")
    *how, to_kind, from_kind = words
    if to_kind in _PAIRS and from_kind == "f32":
        return _pair(one, values, how, to_kind)
    to, source = operands(one, 2)
    if from_kind not in TYPES:
        raise PtxError(from_kind)
    call = _call(to_kind, from_kind, how)
    if call is None:
        raise PtxError(f"cvt.{'.'.join(one.modifiers)}")
    return values.write(to, widened(f"{call}({values.read(source, from_kind)})", to_kind))


def _call(to_kind: str, from_kind: str, how: list[str]) -> str | None:
    """Return the function that converts one value; None where none is known."""
    if from_kind in INTEGERS or "f64" in (to_kind, from_kind):
        is_exact = (from_kind in INTEGERS) == (to_kind in INTEGERS) and to_kind != "f32"
        is_known = to_kind in (*INTEGERS, "f32", "f64") and from_kind in (*INTEGERS, "f32", "f64")
        to_float = to_kind in ("f32", "f64")
        if is_known and (to_float or from_kind in INTEGERS) and how == ([] if is_exact else ["rn"]):
            return f"static_cast<{TYPES[to_kind]}>"
        return None
    if to_kind == "f32" and from_kind in _FROM_HALF and not how:
        return _FROM_HALF[from_kind]
    if from_kind != "f32" or len(how) != 1:
        return None
    if to_kind in _TO_HALF and how == ["rn"]:
        return _TO_HALF[to_kind]
    if to_kind in _INTEGER_NAMES and how[0] in _TO_INTEGER:
        return f"__float2{_INTEGER_NAMES[to_kind]}_{_TO_INTEGER[how[0]]}"
    return "kopt_sim::ptx_tf32" if (to_kind, how) == ("tf32", ["rna"]) else None


def _pair(one: PtxInstruction, values: Values, how: list[str], to_kind: str) -> str:
    """Two floats into one word: the first operand becomes the upper half."""
    to, upper, lower = operands(one, 3)
    high, low = values.read(upper, "f32"), values.read(lower, "f32")
    if to_kind.startswith("e"):
        if sorted(how) != ["rn", "satfinite"]:
            raise PtxError(f"cvt.{'.'.join(one.modifiers)}")
        pair = f"make_float2({low}, {high}), __NV_SATFINITE, {_PAIRS[to_kind]}"
        return values.write(to, f"__nv_cvt_float2_to_fp8x2({pair})")
    if how != ["rn"]:
        raise PtxError(f"cvt.{'.'.join(one.modifiers)}")
    return values.write(to, f"{_PAIRS[to_kind]}({low}, {high})")


CONVERSIONS: dict[str, Handler] = {"cvt": _convert}
"""Handlers by opcode."""
