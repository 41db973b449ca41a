"""PTX instructions that compute, with what the PTX ISA says that each gives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from .sim_run import Array, SimCase

COUNT = 64
CELL = "unsigned long long"
C_TYPES = {"r": "unsigned", "l": CELL, "f": "float", "d": "double", "h": "unsigned short"}
DTYPES: dict[str, Any] = {
    **{"r": np.uint32, "l": np.uint64, "h": np.uint16},
    **{"f": np.float32, "d": np.float64},
}


@dataclass(frozen=True)
class Row:
    """One instruction: its text, the constraints of its operands, and what it gives."""

    text: str
    kinds: str
    """The constraint of the result, then that of each source."""
    expected: Callable[[Array, Array, Array], Array]
    """It is given three arrays; the last are zeros where there are fewer sources."""
    is_close: bool = False
    """Whether it is approximate, or its expected value is rounded twice."""
    error: float = 2e-6
    """The error of an approximate instruction on a GPU, relative or absolute."""
    least_arch: int = 80


def _signed(words: Array) -> Array:
    signed: Array = words.astype(np.int32 if words.dtype == np.uint32 else np.int64)
    return signed


def _half(words: Array, dtype: Any) -> Array:
    """Return the two halves of each word as floats: lower, upper."""
    floats: Array = words.view(dtype).reshape(-1, 2).astype(np.float32)
    return floats


def _packed(halves: Array, dtype: Any) -> Array:
    return halves.astype(dtype).view(np.uint16).reshape(-1, 2).copy().view(np.uint32).ravel()


def _fields(a: Array, first: int, count: int) -> Array:
    return (a >> first) & ((1 << count) - 1)


def _bits(words: Array, count: Callable[[int], int]) -> Array:
    return np.array([count(int(word)) for word in words], np.uint32)


def _extended(fields: Array, count: int) -> Array:
    sign = 1 << (count - 1)
    return ((fields ^ sign) - sign).astype(np.int32)


def _fused(a: Array, b: Array, c: Array) -> Array:
    floats = [x.view(np.float32) for x in (a, b, c)]
    return (floats[0].astype(np.float64) * floats[1] + floats[2]).astype(np.float32).view(a.dtype)


def _of_pairs(compute: np.ufunc) -> Callable[[Array, Array, Array], Array]:
    return lambda a, b, _c: compute(a.view(np.float32), b.view(np.float32)).view(np.uint64)


def _larger(a: Array, b: Array) -> Array:
    return _packed(np.maximum(_half(a, BF16), _half(b, BF16)), BF16)


def _lop3(a: Array, b: Array, c: Array, table: int) -> Array:
    result = np.zeros_like(a)
    for row in range(8):
        if table >> row & 1:
            result |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
    return result


def _bytes(a: Array, b: Array, selector: int) -> Array:
    parts = [words.view(np.uint8).reshape(-1, 4) for words in (a, b)]
    both = np.concatenate(parts, axis=1)
    chosen = [both[:, selector >> 4 * n & 7] for n in range(4)]
    return np.stack(chosen, axis=1).copy().view(np.uint32).ravel()


def _tf32(a: Array) -> Array:
    return (a.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)


F16, BF16, E4M3 = np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn
ROWS = (
    Row("add.s32 %0, %1, %2;", "rrr", lambda a, b, _c: a + b),
    Row("sub.u32 %0, %1, %2;", "rrr", lambda a, b, _c: a - b),
    Row("add.s32 %0, %1, -5;", "rr", lambda a, _b, _c: a - np.uint32(5)),
    Row("add.u64 %0, %1, %2;", "lll", lambda a, b, _c: a + b),
    Row("mul.lo.s32 %0, %1, %2;", "rrr", lambda a, b, _c: a * b),
    Row("mul.hi.u32 %0, %1, %2;", "rrr", lambda a, b, _c: (a.astype(np.uint64) * b) >> 32),
    Row("mul.wide.s32 %0, %1, %2;", "lrr",
        lambda a, b, _c: _signed(a).astype(np.int64) * _signed(b)),
    Row("mad.lo.u32 %0, %1, %2, %3;", "rrrr", lambda a, b, c: a * b + c),
    Row("mad.wide.u32 %0, %1, %2, %3;", "lrrl", lambda a, b, c: a.astype(np.uint64) * b + c),
    Row("min.s32 %0, %1, %2;", "rrr", lambda a, b, _c: np.minimum(_signed(a), _signed(b))),
    Row("max.u64 %0, %1, %2;", "lll", lambda a, b, _c: np.maximum(a, b)),
    Row("abs.s32 %0, %1;", "rr", lambda a, _b, _c: np.abs(_signed(a))),
    Row("abs.f32 %0, %1;", "ff", lambda a, _b, _c: np.abs(a)),
    Row("neg.s64 %0, %1;", "ll", lambda a, _b, _c: -_signed(a)),
    Row("and.b32 %0, %1, 0xff;", "rr", lambda a, _b, _c: a & np.uint32(0xFF)),
    Row("xor.b64 %0, %1, %2;", "lll", lambda a, b, _c: a ^ b),
    Row("not.b32 %0, %1;", "rr", lambda a, _b, _c: ~a),
    Row("shl.b32 %0, %1, 5;", "rr", lambda a, _b, _c: a << np.uint32(5)),
    Row("shl.b32 %0, %1, 33;", "rr", lambda a, _b, _c: a * 0),
    Row("shr.s32 %0, %1, 7;", "rr", lambda a, _b, _c: _signed(a) >> 7),
    Row("shr.s32 %0, %1, 99;", "rr", lambda a, _b, _c: _signed(a) >> 31),
    Row("shr.u64 %0, %1, 9;", "ll", lambda a, _b, _c: a >> np.uint64(9)),
    Row("shf.l.wrap.b32 %0, %1, %2, 8;", "rrr", lambda a, b, _c: b << 8 | a >> 24),
    Row("shf.r.clamp.b32 %0, %1, %2, 40;", "rrr", lambda a, b, _c: b),
    Row("lop3.b32 %0, %1, %2, %3, 0xca;", "rrrr", lambda a, b, c: _lop3(a, b, c, 0xCA)),
    Row("prmt.b32 %0, %1, %2, 0x5140;", "rrr", lambda a, b, _c: _bytes(a, b, 0x5140)),
    Row("prmt.b32 %0, %1, 0, 0xba98;", "rr",
        lambda a, _b, _c: np.where(a.view(np.int8) < 0, 255, 0).astype(np.uint8).view(np.uint32)),
    Row("bfe.u32 %0, %1, 4, 11;", "rr", lambda a, _b, _c: _fields(a, 4, 11)),
    Row("bfe.s32 %0, %1, 4, 11;", "rr", lambda a, _b, _c: _extended(_fields(a, 4, 11), 11)),
    Row("bfi.b32 %0, %1, %2, 8, 16;", "rrr",
        lambda a, b, _c: (b & np.uint32(0xFF0000FF)) | (a & np.uint32(0xFFFF)) << 8),
    Row("popc.b32 %0, %1;", "rr", lambda a, _b, _c: _bits(a, int.bit_count)),
    Row("clz.b64 %0, %1;", "rl", lambda a, _b, _c: _bits(a, lambda x: 64 - x.bit_length())),
    Row("brev.b32 %0, %1;", "rr", lambda a, _b, _c: _bits(a, lambda x: int(f"{x:032b}"[::-1], 2))),
    Row("{.reg .pred p; setp.lt.s32 p, %1, %2; selp.b32 %0, 1, 0, p;}", "rrr",
        lambda a, b, _c: (_signed(a) < _signed(b)).astype(np.uint32)),
    Row("{.reg .pred p; setp.hs.u32 p, %1, %2; selp.b32 %0, %1, %2, p;}", "rrr",
        lambda a, b, _c: np.maximum(a, b)),
    Row("{.reg .pred p; setp.gt.f32 p, %1, %2;\n@p mov.f32 %0, %1;\n@!p mov.f32 %0, 0f3F800000;}",
        "fff", lambda a, b, _c: np.where(a > b, a, np.float32(1))),
    Row("{.reg .b32 lo, hi; mov.b64 {lo, hi}, %1; mov.b64 %0, {hi, lo};}", "ll",
        lambda a, _b, _c: a << np.uint64(32) | a >> np.uint64(32)),
    Row("{.reg .b16 lo, hi; mov.b32 {lo, hi}, %1; mov.b32 %0, {hi, lo};}", "rr",
        lambda a, _b, _c: a << np.uint32(16) | a >> np.uint32(16)),
    Row("cvt.u32.u64 %0, %1;", "rl", lambda a, _b, _c: a.astype(np.uint32)),
    Row("cvt.s64.s32 %0, %1;", "lr", lambda a, _b, _c: _signed(a).astype(np.int64)),
    Row("cvt.s16.s32 %0, %1;", "rr", lambda a, _b, _c: a.astype(np.int16).astype(np.int32)),
    Row("cvt.rn.f32.s32 %0, %1;", "fr", lambda a, _b, _c: _signed(a).astype(np.float32)),
    Row("cvt.rzi.s32.f32 %0, %1;", "rf", lambda a, _b, _c: np.trunc(a).astype(np.int32)),
    Row("cvt.rni.s32.f32 %0, %1;", "rf", lambda a, _b, _c: np.rint(a).astype(np.int32)),
    Row("cvt.f64.f32 %0, %1;", "df", lambda a, _b, _c: a.astype(np.float64)),
    Row("cvt.rn.f32.f64 %0, %1;", "fd", lambda a, _b, _c: a.astype(np.float32)),
    Row("cvt.rn.bf16.f32 %0, %1;", "hf", lambda a, _b, _c: a.astype(BF16).view(np.uint16)),
    Row("cvt.rn.f16.f32 %0, %1;", "hf", lambda a, _b, _c: a.astype(F16).view(np.uint16)),
    Row("cvt.f32.f16 %0, %1;", "fh", lambda a, _b, _c: a.view(F16).astype(np.float32)),
    Row("cvt.rn.bf16x2.f32 %0, %1, %2;", "rff",
        lambda a, b, _c: _packed(np.stack([b, a], 1), BF16)),
    Row("cvt.rn.f16x2.f32 %0, %1, %2;", "rff", lambda a, b, _c: _packed(np.stack([b, a], 1), F16)),
    Row("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;", "hff",
        lambda a, b, _c: np.stack([b, a], 1).astype(E4M3).view(np.uint16).ravel()),
    Row("cvt.rna.tf32.f32 %0, %1;", "rf", lambda a, _b, _c: _tf32(a)),
    Row("add.f32 %0, %1, %2;", "fff", lambda a, b, _c: a + b),
    Row("mul.rn.ftz.f32 %0, %1, %2;", "fff", lambda a, b, _c: a * b),
    Row("add.sat.f32 %0, %1, %2;", "fff", lambda a, b, _c: np.clip(a + b, 0, 1).astype(np.float32)),
    Row("sub.f64 %0, %1, %2;", "ddd", lambda a, b, _c: a - b),
    Row("fma.rn.f32 %0, %1, %2, %3;", "ffff", _fused, is_close=True),
    Row("fma.rn.f32x2 %0, %1, %2, %3;", "llll", _fused, is_close=True, least_arch=100),
    Row("add.f32x2 %0, %1, %2;", "lll", _of_pairs(np.add), least_arch=100),
    Row("mul.rn.f32x2 %0, %1, %2;", "lll", _of_pairs(np.multiply), least_arch=100),
    Row("max.f32 %0, %1, %2;", "fff", lambda a, b, _c: np.maximum(a, b)),
    Row("neg.f32 %0, %1;", "ff", lambda a, _b, _c: -a),
    Row("ex2.approx.ftz.f32 %0, %1;", "ff", lambda a, _b, _c: np.exp2(a), is_close=True),
    Row("rcp.approx.f32 %0, %1;", "ff", lambda a, _b, _c: 1 / a, is_close=True),
    Row("lg2.approx.f32 %0, 0f41000000;", "f", lambda _a, _b, _c: np.full(COUNT, 3, np.float32)),
    Row("rsqrt.approx.f32 %0, 4.0;", "f",
        lambda _a, _b, _c: np.full(COUNT, 0.5, np.float32), is_close=True),
    Row("tanh.approx.f32 %0, %1;", "ff", lambda a, _b, _c: np.tanh(a), is_close=True,
        error=1e-3),
    Row("fma.rn.bf16x2 %0, %1, %2, %3;", "rrrr",
        lambda a, b, c: _packed(_half(a, BF16) * _half(b, BF16) + _half(c, BF16), BF16)),
    Row("add.f16x2 %0, %1, %2;", "rrr",
        lambda a, b, _c: _packed(_half(a, F16) + _half(b, F16), F16)),
    Row("max.bf16x2 %0, %1, %2;", "rrr", lambda a, b, _c: _larger(a, b)),
)  # fmt: skip
_NARROW = ("bf16x2", "f16x2")


def sources(row: Row) -> list[Array]:
    """Return random sources; words that hold halves or floats hold finite ones."""
    random = np.random.default_rng(len(row.text))
    found: list[Array] = []
    for kind in row.kinds[1:]:
        plain = random.uniform(-6, 6, COUNT)
        if kind == "r" and any(name in row.text for name in _NARROW):
            dtype = BF16 if "bf16x2" in row.text else F16
            found.append(_packed(random.uniform(-6, 6, (COUNT, 2)), dtype))
        elif kind == "l" and "f32x2" in row.text:
            found.append(random.uniform(-6, 6, 2 * COUNT).astype(np.float32).view(np.uint64))
        elif kind == "h":
            found.append(plain.astype(F16).view(np.uint16))
        elif kind in "fd":
            found.append(plain.astype(DTYPES[kind]))
        else:
            found.append(random.integers(0, 1 << 63, COUNT, np.uint64).astype(DTYPES[kind]))
    return found


HELPERS = """
template <class T> __device__ T taken(unsigned long long bits) {
  T value;
  memcpy(&value, &bits, sizeof value);
  return value;
}
template <class T> __device__ unsigned long long kept(T value) {
  unsigned long long bits = 0;
  memcpy(&bits, &value, sizeof value);
  return bits;
}
"""


def _block(number: int, row: Row) -> str:
    """Return the code that runs a row on 64-bit cells, whose lower bits are its operands."""
    text = row.text.replace("\n", "\\n")
    place = (f"in[{(number * 4 + n) * COUNT} + i]" for n in range(len(row.kinds) - 1))
    read = ", ".join(
        f'"{kind}"(taken<{C_TYPES[kind]}>({cell}))'
        for kind, cell in zip(row.kinds[1:], place, strict=True)
    )
    kind = row.kinds[0]
    run = f'{C_TYPES[kind]} r; asm("{text}" : "={kind}"(r) : {read});'
    return f"{{ {run} out[{number * COUNT} + i] = kept(r); }}"


def cells_of(values: Array) -> Array:
    """Return values as the lower bits of 64-bit cells."""
    return values.view(f"u{values.dtype.itemsize}").astype(np.uint64)


def ptx_case(rows: Sequence[Row]) -> SimCase:
    """Return one kernel that runs every row; `found` reads its results."""
    cells = np.zeros((len(rows), 4, COUNT), np.uint64)
    for number, row in enumerate(rows):
        for place, values in enumerate(sources(row)):
            cells[number, place] = cells_of(values)
    blocks = "\n  ".join(_block(number, row) for number, row in enumerate(rows))
    source = (
        f'{HELPERS}extern "C" __global__ void k(const {CELL}* in, {CELL}* out) {{\n'
        f"  const int i = threadIdx.x;\n  {blocks}\n}}"
    )
    outputs = {"out": np.zeros(len(rows) * COUNT, np.int64)}
    inputs = {"in": cells.ravel().view(np.int64)}
    return SimCase(source, inputs=inputs, outputs=outputs, block=(COUNT, 1, 1))


def judge(row: Row, cells: Array, error: float) -> None:
    """Assert that the 64-bit cells of a row's results hold what is expected of it."""
    given = [*sources(row), *(np.zeros(COUNT) for _ in range(3))]
    with np.errstate(over="ignore"):
        expected = row.expected(given[0], given[1], given[2])
    dtype = DTYPES[row.kinds[0]]
    found = cells.view(np.uint64).astype(f"u{np.dtype(dtype).itemsize}").view(dtype)
    if row.is_close:
        kind = np.float32 if row.kinds[0] == "l" else dtype
        np.testing.assert_allclose(found.view(kind), expected.view(kind), rtol=error, atol=error)
    else:
        same = expected.astype(dtype) if expected.dtype.kind in "iu" else expected
        np.testing.assert_array_equal(found, same)
