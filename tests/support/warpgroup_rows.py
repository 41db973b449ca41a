"""The forms of wgmma.mma_async, with what the PTX ISA says that each thread gets."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from .sim_run import Array, SimCase
from .warpgroup_layouts import (
    PLACE_BYTES,
    PLAIN,
    SWIZZLES,
    THREADS,
    Layout,
    in_memory,
    registers_of_a,
    registers_of_sums,
)

ROWS = 64
_DTYPES: dict[str, Any] = {
    **{"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32},
    **{"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2},
    **{"s8": np.int8, "u8": np.uint8, "f32": np.float32, "s32": np.int32},
}


@dataclass(frozen=True)
class Form:
    """One form of the instruction."""

    sums: str
    a: str
    b: str
    columns: int = 16
    a_layout: Layout | None = PLAIN
    """None: A lies in registers."""
    b_layout: Layout = PLAIN
    scales: tuple[int, int, int] = (1, 1, 1)
    """The factor of the sums, 0 or 1, and those of A and B, 1 or -1."""
    saturates: bool = False

    @property
    def item(self) -> int:
        """The bytes of an element of A and B."""
        return int(np.dtype(_DTYPES[self.a]).itemsize)

    @property
    def depth(self) -> int:
        """k, which takes 32 bytes."""
        return 32 // self.item

    @property
    def name(self) -> str:
        """The opcode with its modifiers."""
        how = ".satfinite" if self.saturates else ""
        shape = f"m64n{self.columns}k{self.depth}"
        return f"wgmma.mma_async.sync.aligned.{shape}{how}.{self.sums}.{self.a}.{self.b}"

    @property
    def registers(self) -> int:
        """How many registers of sums a thread has."""
        return self.columns // (4 if self.sums == "f16" else 2)


@dataclass(frozen=True)
class WarpgroupRow:
    """One instruction with values."""

    form: Form
    note: str
    words: Array
    """What the kernel reads: A and B as they lie, A's registers, the sums before; 32 bits each."""
    expected: Array
    """The registers of the sums, by thread: (128, registers), 32 bits each."""
    error: float = 0.0
    """Relative or absolute; 0: the bits are the same."""

    @property
    def name(self) -> str:
        """The instruction, and what is special about this row."""
        return f"{self.form.name} {self.note}"


def _values(random: np.random.Generator, shape: tuple[int, int], kind: str, whole: bool) -> Array:
    dtype = _DTYPES[kind]
    if np.dtype(dtype).kind in "iu" and kind != "s32":
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        return np.asarray(random.integers(least, most + 1, shape), dtype)
    if whole:
        return np.asarray(random.integers(-3, 3, shape, endpoint=True)).astype(dtype)
    return random.uniform(-1, 1, shape).astype(dtype)


def _row(form: Form, note: str, whole: bool = True) -> WarpgroupRow:
    random = np.random.default_rng(form.columns + form.depth)
    a = _values(random, (ROWS, form.depth), form.a, whole)
    b = _values(random, (form.columns, form.depth), form.b, whole)
    before = _values(random, (ROWS, form.columns), form.sums, whole)
    if form.saturates:
        before[:] = np.where(random.integers(0, 2, before.shape) == 0, -(1 << 31), (1 << 31) - 1)
    return _of_values(form, note, (a, b, before), whole)


def _multiplied(matrix: Array, kind: str) -> Array:
    """Return what a product takes of a matrix: the lower 13 bits of a tf32 mean nothing."""
    if kind != "tf32":
        return matrix
    return (matrix.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)


def _of_values(
    form: Form, note: str, given: tuple[Array, Array, Array], whole: bool
) -> WarpgroupRow:
    a, b, before = given
    exact = np.int64 if form.sums == "s32" else np.float64
    of_sums, of_a, of_b = form.scales
    left, right = (_multiplied(one, form.a).astype(exact) for one in (a, b))
    products = (left * of_a) @ (right * of_b).T
    sums = products + before.astype(exact) * of_sums
    if form.saturates:
        sums = np.clip(sums, -(1 << 31), (1 << 31) - 1)
    image = np.zeros(PLACE_BYTES, np.uint8)
    if form.a_layout is not None:
        image = in_memory(a, form.a_layout)
    words = [image.view(np.uint32), in_memory(b, form.b_layout).view(np.uint32)]
    words += [registers_of_a(a).ravel(), registers_of_sums(before).ravel()]
    expected = registers_of_sums(sums.astype(_DTYPES[form.sums]))
    errors = {"f32": 1e-5, "f16": 4e-3}
    return WarpgroupRow(
        form, note, np.concatenate(words), expected, 0.0 if whole else errors[form.sums]
    )


_KINDS = (
    *(("f32", kind, kind) for kind in ("f16", "bf16", "tf32")),
    ("f16", "f16", "f16"),
    *(
        (sums, a, b)
        for a, b in (("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e4m3", "e5m2"), ("e5m2", "e5m2"))
        for sums in ("f32", "f16")
    ),
    *(("s32", a, b) for a in ("s8", "u8") for b in ("s8", "u8")),
)
_FORMS = tuple(Form(*kinds) for kinds in _KINDS)
_BF16, _F16 = Form("f32", "bf16", "bf16"), Form("f32", "f16", "f16", columns=64)
_SIGNED = (
    replace(_BF16, scales=scales) for scales in ((0, 1, 1), (1, -1, 1), (0, 1, -1), (1, -1, -1))
)


def _laid_out(a: Layout | None, b: Layout) -> WarpgroupRow:
    def said(layout: Layout | None) -> str:
        if layout is None:
            return "registers"
        major = "along MN" if layout.transposed else "along K"
        return f"{layout.swizzle} bytes {major} at step {layout.step} from {layout.begin}"

    return _row(replace(_F16, a_layout=a, b_layout=b), f"A {said(a)}, B {said(b)}")


WARPGROUP_ROWS = (
    *(_row(form, "of whole numbers") for form in _FORMS),
    *(_row(form, "of fractions", False) for form in _FORMS if form.sums != "s32"),
    *(_row(replace(form, a_layout=None), "A in registers") for form in _FORMS),
    *(_row(replace(_FORMS[-4], saturates=True, columns=32), "at the bounds") for _ in range(1)),
    *(_row(replace(_BF16, columns=n), "by columns") for n in (8, 24, 72, 128, 200, 256)),
    *(_row(form, f"scales {form.scales}") for form in _SIGNED),
    *(
        _laid_out(Layout(swizzle, turned), Layout(swizzle, not turned))
        for swizzle in SWIZZLES
        for turned in (False, True)
    ),
    *(
        _laid_out(Layout(swizzle, turned), Layout(other, turned))
        for swizzle, other in ((16, 128), (64, 32))
        for turned in (False, True)
    ),
    *(_laid_out(Layout(step=step), Layout(64, step=step % 2)) for step in (1, 2, 3)),
    _laid_out(None, Layout(128, transposed=True)),
    _laid_out(Layout(begin=3), Layout(begin=6)),
)
"""Every form that the simulator runs, and every layout."""


def _block(number: int, row: WarpgroupRow, first: int, out: int) -> str:
    form, count = row.form, row.form.registers
    kind, letter = ("float", "f") if form.sums == "f32" else ("unsigned", "r")
    of_words, at = PLACE_BYTES // 4, f"in + {first}"
    lines = [
        f"fill(tile, {at}, {of_words}); fill(tile + {of_words}, {at} + {of_words}, {of_words});",
        'asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); __syncthreads();',
        f"{kind} d[{count}]; unsigned a[4];",
        f"for (int i = 0; i < 4; ++i) a[i] = ({at})[{2 * of_words} + threadIdx.x * 4 + i];",
        f"for (int i = 0; i < {count}; ++i)"
        f" d[i] = taken<{kind}>(({at})[{2 * of_words + 4 * THREADS} + threadIdx.x * {count} + i]);",
    ]
    sums = ", ".join(f"%{n}" for n in range(count))
    if form.a_layout is None:
        left, inputs = "{%a0, %a1, %a2, %a3}", [f'"r"(a[{n}])' for n in range(4)]
        for n in range(4):
            left = left.replace(f"%a{n}", f"%{count + n}")
    else:
        left = f"%{count}"
        inputs = [f'"l"(base + {form.a_layout.descriptor(ROWS)}ull)']
    right = f"%{count + len(inputs)}"
    inputs.append(f'"l"(base + {of_words * 4 >> 4} + {form.b_layout.descriptor(form.columns)}ull)')
    inputs.append(f'"r"({form.scales[0]})')
    rest = ["p"]
    if form.sums != "s32":
        rest += [str(scale) for scale in form.scales[1:]]
    if form.item == 2:
        layouts = [form.a_layout] * (form.a_layout is not None) + [form.b_layout]
        rest += [str(int(layout is not None and layout.transposed)) for layout in layouts]
    text = (
        f"{{.reg .pred p; setp.ne.b32 p, %{count + len(inputs) - 1}, 0;\\n"
        f"{form.name} {{{sums}}}, {left}, {right}, {', '.join(rest)};}}"
    )
    written = ", ".join(f'"+{letter}"(d[{n}])' for n in range(count))
    lines += [
        'asm volatile("wgmma.fence.sync.aligned;" ::: "memory");',
        f'asm volatile("{text}" : {written} : {", ".join(inputs)} : "memory");',
        'asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");',
        'asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");',
        f"for (int i = 0; i < {count}; ++i) out[{out} + threadIdx.x * {count} + i] = kept(d[i]);",
        "__syncthreads();",
    ]
    return (
        f"__device__ void row_{number}(const unsigned* in, unsigned* out, unsigned* tile) {{\n"
        "  const unsigned long long base = (__cvta_generic_to_shared(tile) & 0x3ffff) >> 4;\n"
        f"  {chr(10).join(lines)}\n}}\n"
    )


_HELPERS = """
template <class T> __device__ T taken(unsigned bits) {
  if constexpr (sizeof(T) == 4 && T(0.5) == 0) return bits; else return __uint_as_float(bits);
}
__device__ unsigned kept(unsigned bits) { return bits; }
__device__ unsigned kept(float value) { return __float_as_uint(value); }
__device__ void fill(unsigned* to, const unsigned* from, int words) {
  for (int i = threadIdx.x; i < words; i += 128) to[i] = from[i];
}
"""


def warpgroup_case(rows: Sequence[WarpgroupRow]) -> SimCase:
    """Return one kernel of one warpgroup that runs every row."""
    words, outputs = 0, 0
    blocks, calls = [_HELPERS], list[str]()
    for number, row in enumerate(rows):
        blocks.append(_block(number, row, words, outputs))
        calls.append(f"  row_{number}(in, out, tile);")
        words += len(row.words)
        outputs += row.expected.size
    source = "".join(blocks) + (
        'extern "C" __global__ void k(const unsigned* in, unsigned* out) {\n'
        "  extern __shared__ __align__(1024) unsigned tile[];\n" + "\n".join(calls) + "\n}"
    )
    given = np.concatenate([row.words for row in rows]).view(np.int32)
    return SimCase(
        source,
        inputs={"in": given},
        outputs={"out": np.zeros(outputs, np.int32)},
        block=(THREADS, 1, 1),
        smem=2 * PLACE_BYTES,
    )


def warpgroup_results(rows: Sequence[WarpgroupRow], out: Array) -> dict[str, Array]:
    """Return the registers of each row, by its name."""
    ends = np.cumsum([row.expected.size for row in rows])
    parts = np.split(out.view(np.uint32), ends[:-1])
    return {
        row.name: part.reshape(row.expected.shape) for row, part in zip(rows, parts, strict=True)
    }


def judge_warpgroup(row: WarpgroupRow, found: Array) -> None:
    """Assert that registers hold what is expected of a row."""
    if row.error == 0.0:
        np.testing.assert_array_equal(found, row.expected)
        return
    dtype = _DTYPES[row.form.sums]
    values, wanted = (one.copy().view(dtype).astype(float) for one in (found, row.expected))
    np.testing.assert_allclose(values, wanted, rtol=row.error, atol=row.error)
