"""Integer intrinsics and conversions against Python's integers."""

import numpy as np

from support.sim_run import Sim, SimCase, int32

KERNEL = 'extern "C" __global__ void k'
X, Y = 0x89ABCDEF, 0x01234567


def _signed(x: int) -> int:
    return x - (1 << 32) if x >> 31 else x


def _byte_perm(x: int, y: int, selector: int) -> int:
    pool = [*x.to_bytes(4, "little"), *y.to_bytes(4, "little")]
    picked = bytearray()
    for nibble in range(4):
        code = selector >> (4 * nibble) & 15
        byte = pool[code & 7]
        picked.append((0xFF if byte & 0x80 else 0) if code & 8 else byte)
    return int.from_bytes(picked, "little")


def _dp4a(x: int, y: int, signed: bool) -> int:
    pairs = zip(x.to_bytes(4, "little"), y.to_bytes(4, "little"), strict=True)
    if signed:
        return sum((a - 256 * (a > 127)) * (b - 256 * (b > 127)) for a, b in pairs)
    return sum(a * b for a, b in pairs)


EXPECTED = {
    "__popc(x)": bin(X).count("1"),
    "__popcll(0xf0f0ull << 40)": 8,
    "__clz(0)": 32,
    "__clz(y)": 7,
    "__clzll(1)": 63,
    "__ffs(0)": 0,
    "__ffs(0x50)": 5,
    "__ffsll(1ll << 40)": 41,
    "__brev(x)": int(f"{X:032b}"[::-1], 2),
    "__byte_perm(x, y, 0x7610)": _byte_perm(X, Y, 0x7610),
    "__byte_perm(x, y, 0x89ab)": _byte_perm(X, Y, 0x89AB),
    "__funnelshift_l(x, y, 8)": (Y << 8 | X >> 24) & 0xFFFFFFFF,
    "__funnelshift_l(x, y, 32)": Y,
    "__funnelshift_r(x, y, 12)": (X >> 12 | Y << 20) & 0xFFFFFFFF,
    "__funnelshift_r(x, y, 0)": X,
    "__umulhi(x, y)": X * Y >> 32,
    "__mulhi((int)x, (int)y)": (_signed(X) * Y >> 32) & 0xFFFFFFFF,
    "__umul24(x, y)": ((X & 0xFFFFFF) * (Y & 0xFFFFFF)) & 0xFFFFFFFF,
    "__mul24(-3, 5)": -15 & 0xFFFFFFFF,
    "__sad(-3, 4, 10u)": 17,
    "__dp4a((int)x, (int)y, 5)": (_dp4a(X, Y, True) + 5) & 0xFFFFFFFF,
    "__dp4a(x, y, 5u)": _dp4a(X, Y, False) + 5,
    "__vmaxu4(x, 0x00ff00ffu)": X & 0xFF00FF00 | 0x00FF00FF,
    "__vminu4(x, 0x00ff00ffu)": X & 0x00FF00FF,
    "__vmaxu2(x, 0xffff0000u)": X & 0xFFFF | 0xFFFF0000,
    "__vminu2(x, 0xffff0000u)": X & 0xFFFF0000,
    "max(-1, 1u)": 0xFFFFFFFF,  # mixed signs convert to unsigned, as in C++
    "min(-1, 3)": 0xFFFFFFFF,
    "min(7ull, 9)": 7,
    "__float_as_uint(1.0f)": 0x3F800000,
    "__float_as_int(-0.0f)": 0x80000000,
    "__float_as_uint(__int_as_float(0x7fc00001))": 0x7FC00001,
    # Float to integer: saturating, NaN to 0.
    "__float2int_rn(2.5f)": 2,
    "__float2int_rz(-2.9f)": -2 & 0xFFFFFFFF,
    "__float2int_ru(2.1f)": 3,
    "__float2int_rd(-2.1f)": -3 & 0xFFFFFFFF,
    "__float2int_rn(3e9f)": 0x7FFFFFFF,
    "__float2int_rn(-3e9f)": 0x80000000,
    "__float2int_rn(__int_as_float(0x7fc00000))": 0,
    "__float2uint_rn(-1.0f)": 0,
    "__float2uint_rn(5e9f)": 0xFFFFFFFF,
    "__float2ll_rn(__int_as_float(0x7fc00000)) >> 32": 0x80000000,
    "__float2ull_rn(__int_as_float(0x7fc00000)) >> 32": 0x80000000,
    "__float2ll_rn(1e30f) >> 32": 0x7FFFFFFF,
    "__float_as_uint(__int2float_rn(16777217))": 0x4B800000,
    "__float_as_uint(__uint2float_rn(0xffffffffu))": 0x4F800000,
}


def test_integer_intrinsics_give_exact_values(sim: Sim) -> None:
    stores = "\n".join(f"out[{n}] = (unsigned)({text});" for n, text in enumerate(EXPECTED))
    source = f"{KERNEL}(unsigned* out, unsigned x, unsigned y) {{\n{stores}\n}}"
    case = SimCase(
        source,
        outputs={"out": np.zeros(len(EXPECTED), np.uint32)},
        scalars=(int32("x", X), int32("y", Y)),
        block=(1, 1, 1),
    )
    out = sim.outputs(case)["out"]
    wrong = {t: hex(v) for (t, e), v in zip(EXPECTED.items(), out, strict=True) if v != e}
    assert not wrong
