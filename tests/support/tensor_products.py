"""The forms of tcgen05.mma, with what the PTX ISA says that tensor memory holds after each."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from .sim_run import Array, SimCase
from .tensor_layouts import LANES, PLACE_BYTES, TensorLayout, image_of, in_tensor_memory, rows_of
from .tensor_programs import GIVEN_AWAY, row_function, rows_case, stored, taken_back

DTYPES: dict[str, Any] = {
    **{"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f32": np.float32},
    **{"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2},
    **{"e2m3": ml_dtypes.float6_e2m3fn, "e3m2": ml_dtypes.float6_e3m2fn},
    **{"e2m1": ml_dtypes.float4_e2m1fn, "s8": np.int8, "u8": np.uint8, "s32": np.int32},
}
_BITS = {"tf32": 32, "f16": 16, "bf16": 16, "e2m3": 6, "e3m2": 6, "e2m1": 4}
_NUMBERS = {
    "f16": {"f16": 0, "bf16": 1},
    "tf32": {"tf32": 2},
    "f8f6f4": {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5},
    "i8": {"u8": 0, "s8": 1},
}
_SUMS = {"f16": 0, "f32": 1, "s32": 2}
A_COLUMN, WORDS_OF_A = 264, 8
"""Where A lies in tensor memory, behind D, and the columns that it takes."""
PLAIN = TensorLayout()


@dataclass(frozen=True)
class TensorForm:
    """One form of the instruction."""

    kind: str
    sums: str
    a: str
    b: str
    rows: int = LANES
    columns: int = 32
    a_layout: TensorLayout | None = PLAIN
    """None: A lies in tensor memory."""
    b_layout: TensorLayout = PLAIN
    signs: tuple[int, int] = (1, 1)
    """What A and B are multiplied by: -1 where the instruction negates one."""
    accumulates: bool = True
    halvings: int = 0
    saturates: bool = False
    lane: int = 0
    """The lane of tensor memory that the first row of D lies in."""
    disabled: tuple[int, int, int, int] | None = None
    """Masks of the lanes that stay as they are."""

    @property
    def depth(self) -> int:
        """k, which takes 32 bytes."""
        return {"f16": 16, "tf32": 8}.get(self.kind, 32)

    @property
    def instruction(self) -> int:
        """The instruction descriptor."""
        turns = (self.a_layout is not None and self.a_layout.transposed, self.b_layout.transposed)
        numbers = _NUMBERS[self.kind]
        fields = {
            **{3: int(self.saturates), 4: _SUMS[self.sums], 7: numbers[self.a]},
            **{10: numbers[self.b], 13: int(self.signs[0] < 0), 14: int(self.signs[1] < 0)},
            **{15: int(turns[0]), 16: int(turns[1]), 17: self.columns >> 3, 24: self.rows >> 4},
        }
        return sum(value << first for first, value in fields.items())


@dataclass(frozen=True)
class TensorProductRow:
    """One instruction with values."""

    form: TensorForm
    note: str
    words: Array
    """What the kernel reads: A and B as they lie, A for tensor memory, D before; 32 bits each."""
    expected: Array
    """D and the lanes beside it: (128, columns), 32 bits each."""

    @property
    def name(self) -> str:
        """What is special about this row."""
        form = self.form
        shape = f"m{form.rows}n{form.columns}"
        return f"{form.kind} {shape} {form.sums}.{form.a}.{form.b} {self.note}"


def bits_of(kind: str) -> int:
    """Return the width of an element."""
    return _BITS.get(kind, 8)


def _values(random: np.random.Generator, shape: tuple[int, int], kind: str) -> Array:
    dtype = DTYPES[kind]
    if kind in ("s8", "u8"):
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        return np.asarray(random.integers(least, most + 1, shape), dtype)
    return np.asarray(random.integers(-3, 3, shape, endpoint=True)).astype(dtype)


def codes_of(matrix: Array) -> Array:
    """Return the bits of each element as a number."""
    return matrix.view(f"u{matrix.itemsize}").astype(np.uint32)


def _words_of_sums(matrix: Array) -> Array:
    """Return D as it lies: an element of 16 bits in the lower half of each word."""
    return matrix.view(f"u{matrix.itemsize}").astype(np.uint32)


def _row(form: TensorForm, note: str) -> TensorProductRow:
    random = np.random.default_rng(form.columns + form.depth + form.rows)
    a = _values(random, (form.rows, form.depth), form.a)
    b = _values(random, (form.columns, form.depth), form.b)
    before = _values(random, (LANES, form.columns), form.sums)
    if form.saturates:
        before[:] = np.where(random.integers(0, 2, before.shape) == 0, -(1 << 31), (1 << 31) - 1)
    exact = np.int64 if form.sums == "s32" else np.float64
    lanes = rows_of(form.rows) + form.lane
    sums = (a.astype(exact) * form.signs[0]) @ (b.astype(exact) * form.signs[1]).T
    if form.accumulates and form.sums == "s32":
        sums = sums + before[lanes].astype(exact)
    elif form.accumulates:
        sums = sums + before[lanes].astype(exact) * 2.0**-form.halvings
    if form.saturates:
        sums = np.clip(sums, -(1 << 31), (1 << 31) - 1)
    after = before.copy()
    after[lanes] = sums.astype(DTYPES[form.sums])
    for lane in range(LANES):
        if form.disabled is not None and form.disabled[lane // 32] >> lane % 32 & 1:
            after[lane] = before[lane]
    return _laid_out(form, note, (a, b), (before, after))


def _laid_out(
    form: TensorForm, note: str, factors: tuple[Array, Array], sums: tuple[Array, Array]
) -> TensorProductRow:
    a, b = (codes_of(one) for one in factors)
    left = np.zeros(PLACE_BYTES, np.uint8)
    in_memory = np.zeros((LANES, WORDS_OF_A), np.uint32)
    if form.a_layout is not None:
        left = image_of(a, bits_of(form.a), form.a_layout)
    else:
        in_memory[rows_of(form.rows) + form.lane] = in_tensor_memory(a, bits_of(form.a))
    right = image_of(b, bits_of(form.b), form.b_layout)
    words = [left.view(np.uint32), right.view(np.uint32), in_memory.ravel()]
    before, after = (_words_of_sums(one) for one in sums)
    return TensorProductRow(form, note, np.concatenate([*words, before.ravel()]), after)


_KINDS = (
    *(("f16", sums, kind, kind) for sums, kind in (("f32", "f16"), ("f16", "f16"))),
    *(("f16", "f32", "bf16", "bf16"), ("tf32", "f32", "tf32", "tf32")),
    *(
        ("f8f6f4", sums, a, b)
        for sums, a, b in (
            *(("f32", "e4m3", "e4m3"), ("f16", "e5m2", "e4m3"), ("f32", "e4m3", "e5m2")),
            *(("f32", "e2m3", "e3m2"), ("f32", "e3m2", "e2m1"), ("f16", "e2m1", "e2m3")),
            *(("f32", "e4m3", "e2m1"), ("f32", "e2m1", "e5m2")),
        )
    ),
    *(("i8", "s32", a, b) for a in ("s8", "u8") for b in ("s8", "u8")),
)
_FORMS = tuple(TensorForm(*kinds) for kinds in _KINDS)
_F16, _BF16, _I8 = _FORMS[0], _FORMS[2], _FORMS[-4]
_FP8 = _FORMS[4]


def _said(layout: TensorLayout | None) -> str:
    if layout is None:
        return "tensor memory"
    major = "along MN" if layout.transposed else "along K"
    return f"{layout.swizzle} bytes {major} at step {layout.step} from {layout.begin}"


def _at(form: TensorForm, a: TensorLayout | None, b: TensorLayout) -> TensorProductRow:
    return _row(replace(form, a_layout=a, b_layout=b), f"A {_said(a)}, B {_said(b)}")


PRODUCT_ROWS = (
    *(_row(form, "plain") for form in _FORMS),
    *(_row(replace(form, rows=64), "half of the lanes") for form in _FORMS),
    *(
        _row(replace(form, a_layout=None), "A in tensor memory")
        for form in _FORMS
        if bits_of(form.a) >= 8
    ),
    _row(replace(_BF16, rows=64, lane=16, a_layout=None), "upper lanes, A in tensor memory"),
    *(_row(replace(_BF16, rows=64, columns=n), "by columns") for n in (8, 24, 256)),
    *(_row(replace(_BF16, columns=n), "by columns") for n in (8, 24, 48, 128, 256)),
    *(_row(replace(_I8, rows=64, columns=n), "by columns") for n in (24, 48)),
    _row(replace(_I8, saturates=True), "at the bounds"),
    *(_row(replace(_F16, signs=signs), f"signs {signs}") for signs in ((1, -1), (-1, 1), (-1, -1))),
    *(_row(replace(form, accumulates=False), "of products alone") for form in (_BF16, _I8)),
    *(_row(replace(_BF16, halvings=n), f"D halved {n} times") for n in (1, 3)),
    *(
        _row(replace(form, disabled=(0xF0, 0, 0xFFFFFFFF, 1)), "some lanes stay")
        for form in (_BF16, replace(_FP8, rows=64))
    ),
    *(
        _at(form, TensorLayout(swizzle, turned), TensorLayout(swizzle, other))
        for form in (_F16, _FP8)
        for swizzle in (16, 32, 64, 128)
        for turned, other in ((False, True), (True, False))
    ),
    *(_at(_BF16, TensorLayout(step=step), TensorLayout(64, step=step % 2)) for step in (1, 2, 3)),
    _at(_BF16, TensorLayout(begin=3), TensorLayout(begin=6)),
    _at(_BF16, None, TensorLayout(128, transposed=True)),
)
"""Every form that the simulator runs, and every layout."""


def _instruction(form: TensorForm) -> str:
    """Return the statement that starts the product of a form."""
    words = PLACE_BYTES // 4
    extents = [
        (lines, form.depth, max(bits_of(kind), 8) // 8)
        for lines, kind in ((form.rows, form.a), (form.columns, form.b))
    ]
    left, a = "[%1]", f'"r"(all + {form.lane << 16 | A_COLUMN})'
    if form.a_layout is not None:
        left, a = "%1", f'"l"(base + {form.a_layout.descriptor(extents[0])}ull)'
    b = f'"l"(base + {words * 4 >> 4} + {form.b_layout.descriptor(extents[1])}ull)'
    given = [f'"r"(all + {form.lane << 16})', a, b, f'"r"({form.instruction}u)']
    given += [f'"r"({int(form.accumulates)})']
    lanes = ""
    if form.disabled is not None:
        lanes = " {%5, %6, %7, %8},"
        given += [f'"r"(0x{mask:x}u)' for mask in form.disabled]
    halved = f", {form.halvings}" if form.halvings else ""
    text = (
        f"{{.reg .pred p; setp.ne.b32 p, %4, 0;\\n tcgen05.mma.cta_group::1.kind::{form.kind}"
        f" [%0], {left}, %2, %3,{lanes} p{halved};}}"
    )
    return f'asm volatile("{text}" :: {", ".join(given)});'


def _block(number: int, row: TensorProductRow, first: int, out: int) -> str:
    form, words = row.form, PLACE_BYTES // 4
    lines = [
        f"in += {first}; out += {out};",
        f"fill(tile, in, {words}); fill(tile + {words}, in + {words}, {words});",
        stored(A_COLUMN, WORDS_OF_A, 2 * words),
        stored(0, form.columns, 2 * words + LANES * WORDS_OF_A),
        GIVEN_AWAY,
        f"if (threadIdx.x == 0) {{ after_sync(); {_instruction(form)} commit(bar); }}",
        taken_back(number, form.columns),
    ]
    return row_function(number, lines)


def products_case(rows: Sequence[TensorProductRow]) -> SimCase:
    """Return one kernel of one warpgroup that runs every row."""
    words, outputs, blocks = 0, 0, list[str]()
    for number, row in enumerate(rows):
        blocks.append(_block(number, row, words, outputs))
        words += len(row.words)
        outputs += row.expected.size
    return rows_case(blocks, np.concatenate([row.words for row in rows]), outputs)


def product_results(rows: Sequence[TensorProductRow], out: Array) -> dict[str, Array]:
    """Return what each row left in tensor memory, by its name."""
    ends = np.cumsum([row.expected.size for row in rows])
    parts = np.split(out.view(np.uint32), ends[:-1])
    return {
        row.name: part.reshape(row.expected.shape) for row, part in zip(rows, parts, strict=True)
    }
