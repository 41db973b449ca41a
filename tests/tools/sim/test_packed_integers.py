"""Integers packed into a word, and the minima and maxima of sums, against Python's integers."""

from collections.abc import Callable

import numpy as np
import pytest

from support.sim_run import Sim, SimCase, int32

KERNEL = 'extern "C" __global__ void k'
X, Y = 0x80FF017F, 0x7F010180
_ORDERS: dict[str, Callable[[int, int], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "ge": lambda a, b: a >= b,
    "gt": lambda a, b: a > b,
    "le": lambda a, b: a <= b,
    "lt": lambda a, b: a < b,
}


def _lanes(word: int, bits: int, signed: bool) -> list[int]:
    raw = [word >> at & (1 << bits) - 1 for at in range(0, 32, bits)]
    return [lane - (1 << bits) if signed and lane >> bits - 1 else lane for lane in raw]


def _word(lanes: list[int], bits: int) -> int:
    return sum((lane & (1 << bits) - 1) << at * bits for at, lane in enumerate(lanes))


def _clamped(x: int, bits: int, signed: bool) -> int:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return min(max(x, low), high)


def _saturating(sign: int, bits: int, signed: bool) -> Callable[[int, int], int]:
    return lambda a, b: _clamped(a + sign * b, bits, signed)


def _times(holds: Callable[[int, int], bool], factor: int) -> Callable[[int, int], int]:
    return lambda a, b: factor * holds(a, b)


def _expected(bits: int) -> dict[str, int]:
    """Return every function of two words of lanes of `bits` bits, called with X and Y."""
    n = 32 // bits
    found: dict[str, int] = {}

    def two(name: str, signed: bool, function: Callable[[int, int], int]) -> None:
        pairs = zip(_lanes(X, bits, signed), _lanes(Y, bits, signed), strict=True)
        found[f"{name}{n}(x, y)"] = _word([function(a, b) for a, b in pairs], bits)

    def one(name: str, function: Callable[[int], int]) -> None:
        found[f"{name}{n}(x)"] = _word([function(a) for a in _lanes(X, bits, True)], bits)

    two("__vadd", True, lambda a, b: a + b)
    two("__vsub", True, lambda a, b: a - b)
    for suffix, signed in (("ss", True), ("us", False)):
        two(f"__vadd{suffix}", signed, _saturating(1, bits, signed))
        two(f"__vsub{suffix}", signed, _saturating(-1, bits, signed))
    for suffix, signed in (("s", True), ("u", False)):
        two(f"__vabsdiff{suffix}", signed, lambda a, b: abs(a - b))
        two(f"__vmax{suffix}", signed, max)
        two(f"__vmin{suffix}", signed, min)
        pairs = zip(_lanes(X, bits, signed), _lanes(Y, bits, signed), strict=True)
        found[f"__vsad{suffix}{n}(x, y)"] = sum(abs(a - b) for a, b in pairs)
        for order, holds in _ORDERS.items():
            name = order if order in ("eq", "ne") else order + suffix
            two(f"__vcmp{name}", signed, _times(holds, -1))
            two(f"__vset{name}", signed, _times(holds, 1))
    two("__vavgu", False, lambda a, b: (a + b + 1) // 2)
    two("__vhaddu", False, lambda a, b: (a + b) // 2)
    one("__vabs", abs)
    one("__vneg", lambda a: -a)
    one("__vabsss", lambda a: _clamped(abs(a), bits, True))
    one("__vnegss", lambda a: _clamped(-a, bits, True))
    return found


def _signed(x: int) -> int:
    return x - (1 << 32) if x >> 31 else x


DPX = {
    "__viaddmax_s32(-5, 2, -7)": -3,
    "__viaddmin_s32(-5, 2, -7)": -7,
    "__viaddmax_s32_relu(-5, 2, -7)": 0,
    "__viaddmax_u32(4000000000u, 500000000u, 3u)": 205032704,
    "__viaddmin_u32(1u, 2u, 5u)": 3,
    "__viaddmax_s16x2(0x7fff0001u, 0x00010002u, 0x0000ffffu)": 0x00000003,
    "__viaddmax_s16x2_relu(0xffff0001u, 0xfffe0002u, 0xfffdffffu)": 0x00000003,
    "__viaddmin_u16x2(0xffff0001u, 0x00020002u, 0x00050001u)": 0x00010001,
    "__vimax3_s32(-1, -2, -3)": -1,
    "__vimin3_u32(7u, 3u, 5u)": 3,
    "__vimin3_s32_relu(-1, 2, 3)": 0,
    "__vimax3_s16x2(0xffff0001u, 0xfffe0002u, 0xfffdffffu)": 0xFFFF0002,
    "__vimin3_u16x2(0xffff0001u, 0xfffe0002u, 0xfffd0009u)": 0xFFFD0001,
    "__vimax_s32_relu(-4, -3)": 0,
    "__vimin_s16x2_relu(0x0005ffffu, 0x00070001u)": 0x00050000,
    "__vibmax_s32(3, 3, &first) + 10 * first": 13,
    "__vibmin_s32(4, 3, &first) + 10 * first": 3,
    "__vibmax_u32(4u, 0xffffffffu, &first) - first": 0xFFFFFFFF,
    "__vibmin_s16x2(0x00010001u, 0xffff0002u, &first, &second) + first + 2 * second": 0xFFFF0003,
}


@pytest.mark.slow  # one program with every packed intrinsic
def test_packed_lanes_give_exact_values(sim: Sim) -> None:
    expected = {**_expected(8), **_expected(16), **DPX}
    assert len(expected) == 99
    stores = "\n".join(f"out[{n}] = (unsigned)({text});" for n, text in enumerate(expected))
    source = (
        f"{KERNEL}(unsigned* out, unsigned x, unsigned y) {{\nbool first, second;\n{stores}\n}}"
    )
    case = SimCase(
        source,
        outputs={"out": np.zeros(len(expected), np.uint32)},
        scalars=(int32("x", _signed(X)), int32("y", Y)),
        block=(1, 1, 1),
    )
    out = sim.outputs(case)["out"]
    pairs = zip(expected.items(), out, strict=True)
    assert {text: hex(got) for (text, value), got in pairs if value % 2**32 != got} == {}
