"""torch's dtypes in CUDA code: what is stored, what arithmetic is done in, and the ways between.

Arithmetic on float8_e4m3fn, float16 and bfloat16 is done in float: a value is rounded where it is
stored, not between the operations of one kernel.
"""

import math
import struct

STORED = {
    "float32": "float",
    "float16": "__half",
    "bfloat16": "__nv_bfloat16",
    "float64": "double",
    "int64": "long long",
    "int32": "int",
    "int16": "short",
    "int8": "signed char",
    "uint8": "unsigned char",
    "bool": "bool",
    "float8_e4m3fn": "__nv_fp8_storage_t",
}
"""Element types by torch's name: the dtypes that can be lowered."""
FLOATS = ("float8_e4m3fn", "float16", "bfloat16", "float32", "float64")
_NARROW_LOADS = {
    "float8_e4m3fn": "__half2float(__half(__nv_cvt_fp8_to_halfraw({}, __NV_E4M3)))",
    "float16": "__half2float({})",
    "bfloat16": "__bfloat162float({})",
}
_NARROW_STORES = {
    "float8_e4m3fn": "__nv_cvt_float_to_fp8({}, __NV_SATFINITE, __NV_E4M3)",
    "float16": "__float2half({})",
    "bfloat16": "__float2bfloat16({})",
}
NARROW_FLOATS = frozenset(_NARROW_STORES)
"""Dtypes that a float is rounded to where it is stored."""
_ORDER = ("bool", "uint8", "int8", "int16", "int32", "int64", *FLOATS)


def computed(dtype: str) -> str:
    """Return the C++ type of arithmetic on `dtype`."""
    return "float" if dtype in _NARROW_LOADS else STORED[dtype]


def accumulated(dtype: str) -> str:
    """Return the C++ type in which sums over `dtype` are taken."""
    if dtype in FLOATS:
        return computed(dtype)
    return "long long"


def loaded(dtype: str, text: str) -> str:
    """Return the code that reads an element of `dtype` for arithmetic."""
    return _NARROW_LOADS.get(dtype, "{}").format(text)


def stored(dtype: str, text: str) -> str:
    """Return the code that rounds a value of `computed(dtype)` to an element."""
    return _NARROW_STORES.get(dtype, "{}").format(text)


def rounded(dtype: str, text: str) -> str:
    """Return the code that rounds a float to the nearest of `dtype`, which stays a float."""
    if dtype in ("bfloat16", "float16"):
        return f"op::rounded_{dtype}({text})"
    return loaded(dtype, stored(dtype, text))


def cast(text: str, source: str, target: str) -> str:
    """Return a value of `computed(source)` as one of `computed(target)`."""
    if computed(source) == computed(target):
        return text
    if target == "bool":
        return f"({text} != 0)"
    if source in FLOATS and target in ("uint8", "int8", "int16"):
        return f"static_cast<{STORED[target]}>(static_cast<long long>({text}))"
    return f"static_cast<{computed(target)}>({text})"


def promoted(dtypes: list[str]) -> str:
    """Return the dtype in which values of these dtypes are compared."""
    best = max(dtypes, key=_ORDER.index)
    return "float32" if {"float16", "bfloat16"} <= set(dtypes) and best != "float64" else best


def number(value: float | int | bool, ctype: str) -> str:
    """Return a constant of the C++ type `ctype`."""
    if ctype == "bool":
        return "true" if value else "false"
    if ctype not in ("float", "double"):
        return _integer(int(value), ctype)
    as_float = float(value)
    if math.isnan(as_float):
        return f"op::nan<{ctype}>()"
    if ctype == "float":
        as_float = _rounded_to_float(as_float)
    if math.isinf(as_float):
        return f"{'-' if as_float < 0 else ''}op::infinity<{ctype}>()"
    if ctype == "double":
        return repr(as_float)
    return f"{_shortest(as_float)}f"


def _integer(value: int, ctype: str) -> str:
    if ctype == "int":
        return str(value)
    if ctype != "long long":
        return f"static_cast<{ctype}>({value})"
    return f"(-{2**63 - 1}LL - 1)" if value == -(2**63) else f"{value}LL"


def _rounded_to_float(value: float) -> float:
    try:
        return float(struct.unpack("f", struct.pack("f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def _shortest(value: float) -> str:
    """Return the shortest decimal that is this float."""
    for digits in range(1, 10):
        text = f"{value:.{digits}g}"
        if _rounded_to_float(float(text)) == value:
            return text if "." in text or "e" in text else f"{text}.0"
    return repr(value)
