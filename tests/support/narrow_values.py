"""Rounding into narrow formats by search over all their values, apart from kernels/rounding.py."""

from bisect import bisect_left
from functools import cache

BF16_CODES = 0x7F80
E4M3_CODES = 0x7F


@cache
def bf16_magnitudes() -> tuple[float, ...]:
    """Return every finite bfloat16 magnitude, by code."""
    return tuple(_magnitude(code, mantissa_bits=7, bias=127) for code in range(BF16_CODES))


@cache
def e4m3_magnitudes() -> tuple[float, ...]:
    """Return every e4m3 magnitude, by code; the last is 448."""
    return tuple(_magnitude(code, mantissa_bits=3, bias=7) for code in range(E4M3_CODES))


def nearest(magnitudes: tuple[float, ...], value: float) -> float:
    """Return the value nearest to `value`, ties to the even code; beyond the last, the last."""
    size = abs(value)
    above = min(bisect_left(magnitudes, size), len(magnitudes) - 1)
    below = max(above - 1, 0)
    down, up = size - magnitudes[below], magnitudes[above] - size
    code = below if down < up or (down == up and below % 2 == 0) else above
    return -magnitudes[code] if value < 0 else magnitudes[code]


def _magnitude(code: int, mantissa_bits: int, bias: int) -> float:
    exponent, mantissa = code >> mantissa_bits, code & ((1 << mantissa_bits) - 1)
    if exponent == 0:
        return mantissa * 2.0 ** (1 - bias - mantissa_bits)
    return ((1 << mantissa_bits) + mantissa) * 2.0 ** (exponent - bias - mantissa_bits)
