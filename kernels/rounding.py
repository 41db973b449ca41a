"""Correct rounding into floats of 16 bits and fewer: nearest, ties to even, one step from float64.

The oracles round with these functions and nothing else. ml_dtypes is only the storage type here:
it rounds from float64 through float32, which moves values next to a midpoint, and turns e4m3
overflow into NaN where the hardware saturates. Quantisation rules (block scales, global scales)
are not here; `nvfp4.py` has them.

Source: IEEE 754-2019 section 4.3.1 (roundTiesToEven); OCP 8-bit Floating Point Specification 1.0
(e4m3: no infinities, largest 448); OCP Microscaling Formats 1.0 (e2m1: no NaN, largest 6); PTX ISA,
`cvt` with `.satfinite`.
"""

from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import numpy.typing as npt

from .dtypes import numpy_dtype
from .wide_work import run_wide, slices

E4M3_MAX = 448.0
E5M2_MAX = 57344.0
E2M1_MAX = 6.0

_EXPONENT_SHIFT = np.int64(52)
_EXPONENT_MASK = np.int64(0x7FF << 52)
_EXPONENT_BIAS = 1023
_CHUNK = 1 << 14  # elements; 64 KiB temporaries stay below malloc's mmap threshold and in L2
_PART = 1 << 20  # elements; of one thread


@dataclass(frozen=True)
class _Format:
    """A binary format with subnormals whose codes ascend with the magnitude."""

    mantissa_bits: int
    min_exponent: int
    """Exponent of the smallest normal number, which the subnormals share."""
    limit: float
    """Magnitudes above it become `limit`: the largest number, or for bfloat16 infinity's 2^128."""
    nan_code: int
    sign_shift: int
    storage: npt.DTypeLike


_BF16 = _Format(7, -126, 2.0**128, 0x7FC0, 15, np.uint16)
_E5M2 = _Format(2, -14, E5M2_MAX, 0x7F, 7, np.uint8)
_E4M3 = _Format(3, -6, E4M3_MAX, 0x7F, 7, np.uint8)
_E2M1 = _Format(1, 0, E2M1_MAX, 0x7, 3, np.uint8)

_E2M1_VALUES = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])


def round_to_bf16(x: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return `x` as ml_dtypes bfloat16; magnitudes past the last midpoint become infinity."""
    codes = _encode(x, _BF16)
    return codes.view(numpy_dtype("bfloat16"))


def round_to_fp16(x: npt.ArrayLike) -> npt.NDArray[np.float16]:
    """Return `x` as float16; magnitudes past the last midpoint, 65,520, become infinity."""
    with np.errstate(over="ignore"):
        return np.asarray(x, dtype=np.float64).astype(np.float16)


def round_to_e5m2(x: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return `x` as ml_dtypes float8_e5m2, saturating to +-57,344; NaN stays NaN."""
    return _encode(x, _E5M2).view(numpy_dtype("float8_e5m2"))


def round_to_e4m3(x: npt.ArrayLike) -> npt.NDArray[Any]:
    """Return `x` as ml_dtypes float8_e4m3fn, saturating to +-448; NaN stays NaN."""
    return _encode(x, _E4M3).view(numpy_dtype("float8_e4m3fn"))


def round_to_e2m1(x: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Return the e2m1 codes 0 to 15 of `x`, one per byte, saturating to +-6.

    Bit 3 is the sign, also of zero: -0.1 has code 8. NaN gets code 7, as `cvt` gives it.
    """
    return _encode(x, _E2M1)


def pack_e2m1(codes: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.uint8]:
    """Return (..., n) codes as (..., n / 2) bytes, the even element in the low nibble."""
    single = np.ascontiguousarray(codes, dtype=np.uint8)
    pairs = single.view(np.uint16)  # the even element in the lower byte
    packed: npt.NDArray[np.uint8] = (pairs | (pairs >> np.uint16(4))).astype(np.uint8)
    return packed


def unpack_e2m1(packed: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]:
    """Return (..., n) bytes as (..., 2 n) codes, the low nibble first."""
    codes = np.empty((*packed.shape[:-1], 2 * packed.shape[-1]), dtype=np.uint8)
    codes[..., 0::2] = packed & np.uint8(0xF)
    codes[..., 1::2] = packed >> np.uint8(4)
    return codes


def decode_e2m1(codes: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Return the values of e2m1 codes 0 to 15."""
    values: npt.NDArray[np.float64] = _E2M1_VALUES[codes]
    return values


def decode(array: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Return the values of a bfloat16, fp8, float16, float32 or integer array; exact."""
    return array.astype(np.float64)


def _encode(x: npt.ArrayLike, target: _Format) -> npt.NDArray[Any]:
    """Return the codes of `x` in `target`, one per element in the shape of `x`.

    By way of float32: midpoints between neighbours of `target` have at most 9 bits there, so that
    no value crosses one on the way. What lies on one may have been moved to it: float64 decides.
    """
    values = np.asarray(x)
    if values.dtype != np.float32:
        values = values.astype(np.float64, copy=False)
    flat = np.ascontiguousarray(values).reshape(-1)
    codes = np.empty(flat.shape, dtype=target.storage)
    shorten = _to_bf16 if target is _BF16 else partial(_look_up, _halves_of(target))

    def encode(part: slice) -> None:
        for chunk in slices(part.stop, _CHUNK, part.start):
            wide, code = flat[chunk], codes[chunk]
            with np.errstate(over="ignore", invalid="ignore"):
                single = wide.astype(np.float32)
            midpoints = shorten(single.view(np.uint32), code)
            if midpoints.size:
                exact = wide[midpoints]
                moved = exact != single[midpoints]
                if moved.any():
                    narrowed = _encode_exactly(exact[moved].astype(np.float64), target)
                    code[midpoints[moved]] = narrowed

    run_wide(encode, slices(flat.size, _PART))
    return codes.reshape(values.shape)


def _to_bf16(bits: npt.NDArray[np.uint32], codes: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
    """Put the upper halves of float32 numbers, rounded, into `codes`.

    Return where numbers are midpoints, or none.
    """
    codes[:] = _upper_halves(bits + np.uint32(0x7FFF))
    is_midpoint = (bits << np.uint32(16)) == np.uint32(1 << 31)
    if not np.isfinite(bits.view(np.float32)).all():
        is_midpoint |= np.isnan(bits.view(np.float32))
    if not is_midpoint.any():
        return _NOWHERE
    midpoints = np.flatnonzero(is_midpoint)
    codes[midpoints] += _upper_halves(bits)[midpoints] & np.uint16(1)  # to even
    return midpoints


_NOWHERE: npt.NDArray[np.int64] = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class _UpperHalves:
    """What becomes of float32 numbers, by their upper half."""

    codes: npt.NDArray[np.uint16]
    """Code of the numbers that have more than zeros behind it; plus `_MIDPOINT` where the number
    with nothing but zeros may be a midpoint, or is none."""
    alone: npt.NDArray[Any]
    """Code of the number with nothing but zeros."""


_MIDPOINT = np.uint16(1 << 8)


def _look_up(
    halves: _UpperHalves, bits: npt.NDArray[np.uint32], codes: npt.NDArray[Any]
) -> npt.NDArray[np.int64]:
    """Put the codes of float32 numbers into `codes`; return where numbers are midpoints, or none.

    Args:
        halves: Of a format with codes of 8 bits or fewer.
        bits: The numbers.
        codes: One for each.
    """
    upper, lower = _upper_halves(bits), bits.view(np.uint16)[0::2]
    found = np.take(halves.codes, upper, mode="wrap")  # "raise" looks at each index first
    codes[:] = found  # the lower byte
    if np.count_nonzero(lower) == lower.size:
        return _NOWHERE
    is_midpoint = found >= _MIDPOINT
    is_midpoint &= lower == 0
    midpoints = np.flatnonzero(is_midpoint)
    codes[midpoints] = halves.alone[upper[midpoints]]
    return midpoints


def _upper_halves(bits: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint16]:
    """Return a view of the upper halves; the machines that CUDA runs on store the lower first."""
    return bits.view(np.uint16)[1::2]


@cache
def _halves_of(target: _Format) -> _UpperHalves:
    """Return what becomes of float32 numbers in `target`.

    Between an upper half and the next no two numbers round apart: a midpoint has 9 bits at most.
    """
    upper = np.arange(1 << 16, dtype=np.uint32)
    first = upper << np.uint32(16)
    with np.errstate(invalid="ignore"):  # NaN of all kinds
        inner, alone = (
            _encode_exactly(bits.view(np.float32).astype(np.float64), target).astype(np.uint16)
            for bits in (first | np.uint32(0x8000), first)
        )
    magnitude = upper & np.uint32(0x7FFF)
    below = np.roll(inner, 1)  # of the numbers nearer to zero
    is_midpoint = (inner != below) & (magnitude != 0) | (magnitude >= 0x7F80)
    return _UpperHalves(inner | is_midpoint * _MIDPOINT, alone)


def _encode_exactly(x: npt.NDArray[np.float64], target: _Format) -> npt.NDArray[np.int64]:
    """Return the codes of `x` as int64.

    With e = max(exponent, min_exponent) and step = 2^(e - mantissa_bits), the rounded magnitude is
    rint(|x| / step) steps, and its code is that count plus (e - min_exponent) * 2^mantissa_bits: a
    count that rounds up to the next power of two carries into the exponent by itself. The division
    by a power of two is exact, so rint (ties to even) is the only rounding.
    """
    magnitude = np.minimum(np.abs(x), target.limit)
    is_nan = np.isnan(magnitude)
    magnitude[is_nan] = 0.0
    floor = np.int64(target.min_exponent + _EXPONENT_BIAS) << _EXPONENT_SHIFT
    exponent = np.maximum(magnitude.view(np.int64) & _EXPONENT_MASK, floor)
    step = (exponent - (np.int64(target.mantissa_bits) << _EXPONENT_SHIFT)).view(np.float64)
    count = np.rint(magnitude / step).astype(np.int64)
    code: npt.NDArray[np.int64] = count + (
        (exponent - floor) >> np.int64(52 - target.mantissa_bits)
    )
    code |= np.signbit(x).astype(np.int64) << np.int64(target.sign_shift)
    code[is_nan] = target.nan_code
    return code
