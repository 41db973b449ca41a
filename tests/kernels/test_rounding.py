"""Rounding against an independent search: exact fractions over all values of a format."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import pairwise
from math import inf, nextafter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.rounding import (
    decode,
    decode_e2m1,
    pack_e2m1,
    round_to_bf16,
    round_to_e2m1,
    round_to_e4m3,
    round_to_e5m2,
    unpack_e2m1,
)

E2M1_MAGNITUDES = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0]


def _e4m3_magnitude(code: int) -> float:
    exponent, mantissa = code >> 3, code & 7
    return mantissa * 2.0**-9 if exponent == 0 else (8 + mantissa) * 2.0 ** (exponent - 10)


def _e5m2_magnitude(code: int) -> float:
    exponent, mantissa = code >> 2, code & 3
    return mantissa * 2.0**-16 if exponent == 0 else (4 + mantissa) * 2.0 ** (exponent - 17)


def _bf16_magnitude(code: int) -> float:
    exponent, mantissa = code >> 7, code & 127
    return mantissa * 2.0**-133 if exponent == 0 else (128 + mantissa) * 2.0 ** (exponent - 134)


@dataclass(frozen=True)
class Format:
    """One narrow format: its magnitudes by code, and the rounding under test as code numbers."""

    name: str
    magnitudes: Sequence[float]
    """Finite magnitudes in ascending order; the index is the code without its sign."""
    sign_bit: int
    codes_of: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]


FORMATS = [
    Format("e2m1", E2M1_MAGNITUDES, 8, round_to_e2m1),
    Format(
        "e4m3",
        [_e4m3_magnitude(code) for code in range(0x7F)],
        0x80,
        lambda x: round_to_e4m3(x).view(np.uint8),
    ),
    Format(
        "e5m2",
        [_e5m2_magnitude(code) for code in range(0x7C)],
        0x80,
        lambda x: round_to_e5m2(x).view(np.uint8),
    ),
    Format(
        "bf16",
        [_bf16_magnitude(code) for code in range(0x7F80)],
        0x8000,
        lambda x: round_to_bf16(x).view(np.uint16),
    ),
]
each_format = pytest.mark.parametrize("fmt", FORMATS, ids=lambda fmt: fmt.name)


@cache
def _fractions(name: str) -> list[Fraction]:
    fmt = next(fmt for fmt in FORMATS if fmt.name == name)
    return [Fraction(magnitude) for magnitude in fmt.magnitudes]


def _nearest_code(fmt: Format, value: float) -> int:
    """Search the two neighbours of a magnitude by exact distance, ties to the even code."""
    fractions, exact = _fractions(fmt.name), Fraction(value)
    below = bisect_right(fractions, exact) - 1
    if below + 1 == len(fractions):
        return below
    down, up = exact - fractions[below], fractions[below + 1] - exact
    if down == up:
        return below if below % 2 == 0 else below + 1
    return below if down < up else below + 1


def _check(fmt: Format, magnitudes: Sequence[float]) -> None:
    """Compare with the exact search; the negative half must mirror the positive one."""
    expected = [_nearest_code(fmt, value) for value in magnitudes]
    expected += [fmt.sign_bit | code for code in expected]
    assert fmt.codes_of(_both_signs(magnitudes)).tolist() == expected


def _both_signs(values: Sequence[float]) -> npt.NDArray[np.float64]:
    positive = np.array(values, dtype=np.float64)
    return np.concatenate([positive, -positive])


@each_format
def test_every_value_rounds_to_itself(fmt: Format) -> None:
    codes = fmt.codes_of(_both_signs(fmt.magnitudes))
    n = len(fmt.magnitudes)
    assert codes.tolist() == [*range(n), *(fmt.sign_bit + code for code in range(n))]


@each_format
def test_every_midpoint_and_both_its_float64_neighbours_round_to_nearest_even(fmt: Format) -> None:
    magnitudes = fmt.magnitudes
    midpoints = [(low + high) / 2 for low, high in pairwise(magnitudes)]
    _check(fmt, [nextafter(m, to) for m in midpoints for to in (-inf, m, inf)])


@each_format
def test_neighbours_of_every_value_round_back_to_it(fmt: Format) -> None:
    magnitudes = fmt.magnitudes[1:]
    values = _both_signs([nextafter(m, to) for to in (-inf, inf) for m in magnitudes])
    codes = fmt.codes_of(_both_signs(magnitudes)).reshape(2, 1, -1)
    assert (fmt.codes_of(values).reshape(2, 2, -1) == codes).all()


@each_format
def test_random_values_over_the_whole_range_round_as_the_exact_search_does(fmt: Format) -> None:
    rng = np.random.default_rng(7)
    low, high = np.log2(fmt.magnitudes[1]) - 4, np.log2(fmt.magnitudes[-1])
    _check(fmt, np.exp2(rng.uniform(low, high, 4000)).tolist())


@each_format
def test_zero_keeps_its_sign_and_the_least_float64_vanishes(fmt: Format) -> None:
    values = np.array([0.0, -0.0, 5e-324, -5e-324])
    assert fmt.codes_of(values).tolist() == [0, fmt.sign_bit, 0, fmt.sign_bit]


@each_format
@pytest.mark.parametrize("lower_half", [0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF])
def test_every_upper_half_of_a_float32_and_what_is_beside_it_rounds_as_a_search_does(
    fmt: Format, lower_half: int
) -> None:
    upper = np.arange(0x7F80, dtype=np.uint32) << np.uint32(16)
    single = (upper | np.uint32(lower_half)).view(np.float32)
    exact = single.astype(np.float64)

    for values in (single, exact, np.nextafter(exact, 0.0), np.nextafter(exact, np.inf)):
        both = np.concatenate([values, -values])
        positive = _codes_by_search(fmt, values.astype(np.float64))
        expected = np.concatenate([positive, positive | fmt.sign_bit])
        np.testing.assert_array_equal(fmt.codes_of(both), expected)


def _codes_by_search(fmt: Format, magnitudes: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return codes by a search in the midpoints, which float64 holds; bf16 has infinity besides."""
    values = np.array([*fmt.magnitudes, 2.0**128] if fmt.name == "bf16" else fmt.magnitudes)
    midpoints = (values[1:] + values[:-1]) / 2
    code = np.searchsorted(midpoints, magnitudes, side="left")
    is_tie = midpoints[np.minimum(code, midpoints.size - 1)] == magnitudes
    codes: npt.NDArray[np.int64] = code + (is_tie & (code % 2 == 1))
    return codes


def test_e4m3_saturates_and_keeps_nan() -> None:
    values = np.array([448.0, 464.0, nextafter(464.0, inf), 1e308, inf, -inf])
    assert decode(round_to_e4m3(values)).tolist() == [448.0] * 5 + [-448.0]
    assert np.isnan(decode(round_to_e4m3(np.array([np.nan, -np.nan])))).all()


def test_e2m1_saturates_and_gives_its_largest_value_for_nan() -> None:
    values = np.array([6.0, 7.0, nextafter(7.0, inf), 1e308, inf, -inf, np.nan])
    assert round_to_e2m1(values).tolist() == [7, 7, 7, 7, 7, 15, 7]


def test_bf16_overflows_at_the_last_midpoint_and_keeps_nan() -> None:
    last_midpoint = 2.0**128 - 2.0**119
    values = np.array([nextafter(last_midpoint, 0), last_midpoint, 1e308, inf, -inf])
    codes = round_to_bf16(values).view(np.uint16)
    assert codes.tolist() == [0x7F7F, 0x7F80, 0x7F80, 0x7F80, 0xFF80]
    assert np.isnan(decode(round_to_bf16(np.array([np.nan])))).all()


def test_bf16_is_not_rounded_through_float32() -> None:
    above_midpoint = 1.0 + 2.0**-8 + 2.0**-40  # float32 loses the 2^-40, then ties to 1.0
    assert decode(round_to_bf16(np.array([above_midpoint]))).tolist() == [1.0 + 2.0**-7]


def test_shape_and_dtype_are_kept_for_strided_empty_and_scalar_arrays() -> None:
    strided = np.arange(24, dtype=np.float64).reshape(4, 6)[::2, ::3]
    assert decode(round_to_bf16(strided)).tolist() == strided.tolist()
    assert round_to_e4m3(np.empty((0, 3))).shape == (0, 3)
    assert round_to_e4m3(np.float64(1.0)).shape == ()
    assert round_to_bf16(strided).dtype == numpy_dtype("bfloat16")
    assert round_to_e4m3(strided).dtype == numpy_dtype("float8_e4m3fn")
    assert round_to_e2m1(strided).dtype == np.dtype(np.uint8)


def test_inputs_are_not_changed() -> None:
    values = np.array([np.nan, -1e300, 3.3])
    round_to_e4m3(values)
    assert np.isnan(values[0])
    assert values[1:].tolist() == [-1e300, 3.3]


def test_more_elements_than_one_chunk_round_alike() -> None:
    values = np.tile(np.array([0.3, -5.1, 449.0, 1e-3]), 30_000)
    codes = round_to_e4m3(values).view(np.uint8).reshape(-1, 4)
    assert (codes == codes[0]).all()


def test_packing_puts_the_even_element_into_the_low_nibble() -> None:
    codes = np.array([[1, 2, 15, 0]], dtype=np.uint8)
    assert pack_e2m1(codes).tolist() == [[0x21, 0x0F]]
    assert (pack_e2m1(codes.astype(np.int64)) == pack_e2m1(codes)).all()


def test_packing_is_undone_by_unpacking() -> None:
    packed = np.arange(256, dtype=np.uint8).reshape(2, 128)
    assert (pack_e2m1(unpack_e2m1(packed)) == packed).all()


def test_decoded_e2m1_codes_are_the_sixteen_values() -> None:
    values = decode_e2m1(np.arange(16, dtype=np.uint8))
    assert values.tolist() == [*E2M1_MAGNITUDES, *(-m for m in E2M1_MAGNITUDES)]
    assert np.signbit(values[8:]).all()
