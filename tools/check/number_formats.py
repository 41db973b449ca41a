"""Bit patterns of the output formats: their values, their order, and the magnitudes they can hold.

Decoding and counting only; rounding is `kernels/rounding.py`.
"""

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.rounding import decode_e2m1

Bits = npt.NDArray[Any]

E2M1 = "e2m1"
"""The logical format of packed codes; its storage dtype is uint8 with two codes per byte."""

CODE_FORMATS = (E2M1, "float8_e4m3fn", "float8_e5m2")
HALF_FORMATS = {"bfloat16": (8, -133), "float16": (11, -24)}
"""Formats of 16 bits: bits of the significand, exponent of the least spacing."""
FLOAT_FORMATS = (*CODE_FORMATS, *HALF_FORMATS, "float32", "float64")

_EXPONENT_SHIFT = np.int64(52)
_EXPONENT_MASK = np.int64(0x7FF << 52)
_EXPONENT_BIAS = 1023

_FINITE = {E2M1: 8, "float8_e4m3fn": 127, "float8_e5m2": 124}

_SIGN_SHIFT = {
    E2M1: 3,
    "float8_e4m3fn": 7,
    "float8_e5m2": 7,
    "bfloat16": 15,
    "float16": 15,
    "float32": 31,
    "float64": 63,
}


def storage_bits(array: npt.NDArray[Any]) -> Bits:
    """Return `array` flat, as unsigned integers of its element size; no copy if contiguous."""
    flat = np.ascontiguousarray(array).reshape(-1)
    return flat.view(np.dtype(f"u{flat.dtype.itemsize}"))


def poison_bits(dtype: np.dtype[Any], poison: int) -> Any:
    """Return an element of the unsigned `dtype` of which every byte is `poison`."""
    return dtype.type(int.from_bytes(bytes([poison]) * dtype.itemsize, "little"))


def decode_bits(bits: Bits, number_format: str) -> npt.NDArray[np.float64]:
    """Return the values of bit patterns as `storage_bits` gives them; e2m1 as codes 0 to 15."""
    if number_format == E2M1:
        return decode_e2m1(bits)
    values: npt.NDArray[np.float64] = bits.view(numpy_dtype(number_format)).astype(np.float64)
    return values


def ordinals(bits: Bits, number_format: str) -> npt.NDArray[np.int64]:
    """Return each float's signed place in the order of its format: neighbours differ by 1.

    Both zeros have place 0. NaN and infinity get the places after the largest number.
    """
    shift = _SIGN_SHIFT[number_format]
    magnitude = (bits & bits.dtype.type((1 << shift) - 1)).astype(np.int64)
    sign = 1 - 2 * (bits >> bits.dtype.type(shift)).astype(np.int64)
    signed: npt.NDArray[np.int64] = sign * magnitude
    return signed


@cache
def magnitudes(number_format: str) -> npt.NDArray[np.float64]:
    """Return the finite non-negative numbers of a code format by ordinal, 8 for e2m1."""
    count = _FINITE[number_format]
    values = decode_bits(np.arange(count, dtype=np.uint8), number_format)
    values.setflags(write=False)
    return values


def half_ulp(
    values: npt.NDArray[np.floating[Any]], number_format: str = "bfloat16"
) -> npt.NDArray[np.float64]:
    """Return the spacing of a 16-bit format at each value: of bfloat16, 2^-7 for 1 up to 2.

    It is the least spacing at 0, and where there is no number.
    """
    bits, least = HALF_FORMATS[number_format]
    exponent = values.astype(np.float64).view(np.int64) & _EXPONENT_MASK
    exponent[exponent == _EXPONENT_MASK] = 0
    exponent -= np.int64(bits - 1) << _EXPONENT_SHIFT
    np.maximum(exponent, np.int64(least + _EXPONENT_BIAS) << _EXPONENT_SHIFT, out=exponent)
    return exponent.view(np.float64)


def half_step(number_format: str) -> float:
    """Return the largest relative error of one rounding to a 16-bit format: 2^-8 for bfloat16."""
    return float(2.0 ** -HALF_FORMATS[number_format][0])


def show(bits: Bits, number_format: str) -> str:
    """Return one element in words for an author: its value, and its code for narrow formats."""
    if number_format not in FLOAT_FORMATS:
        return str(int(bits))
    value = float(decode_bits(np.asarray([bits]), number_format)[0])
    if number_format in CODE_FORMATS:
        digits = 1 if number_format == E2M1 else 2
        return f"{value:g} (code 0x{int(bits):0{digits}X})"
    return f"{value:.9g}"
