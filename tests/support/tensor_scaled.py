"""The forms of tcgen05.mma with scales, and of tcgen05.cp, as the PTX ISA has them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

from .sim_run import Array, SimCase
from .tensor_layouts import LANES, PLACE_BYTES, TensorLayout, image_of, in_tensor_memory
from .tensor_products import DTYPES, PLAIN, bits_of, codes_of
from .tensor_programs import GIVEN_AWAY, row_function, rows_case, stored, taken_back

_NUMBERS = {"e4m3": 0, "e5m2": 1, "e2m3": 3, "e3m2": 4, "e2m1": 5}
_TYPES_OF_SCALES = {"ue8m0": (1, ml_dtypes.float8_e8m0fnu), "ue4m3": (0, ml_dtypes.float8_e4m3fn)}
COLUMNS_OF_A, COLUMNS_OF_SCALES = 8, 12
A_COLUMN, SCALES_COLUMN = 264, 280
"""Where A lies in tensor memory, and the scales: of 128 rows, then of 256 columns."""


@dataclass(frozen=True)
class ScaledForm:
    """One form of tcgen05.mma with scales."""

    kind: str = "mxf8f6f4"
    a: str = "e4m3"
    b: str = "e4m3"
    vector: str = ""
    """The qualifier that says how many scales a row has."""
    count: int = 1
    scale: str = "ue8m0"
    columns: int = 32
    firsts: tuple[int, int] = (0, 0)
    """The bytes where the scales of A and B begin."""
    a_layout: TensorLayout | None = PLAIN
    b_layout: TensorLayout = PLAIN
    signs: tuple[int, int] = (1, 1)

    @property
    def depth(self) -> int:
        """The k of a product."""
        return 32 if self.kind == "mxf8f6f4" else 64

    @property
    def place_bits(self) -> int:
        """The width of the place of an element."""
        return 8 if self.kind == "mxf8f6f4" else 4

    @property
    def instruction(self) -> int:
        """The instruction descriptor."""
        types = [_NUMBERS[one] if self.kind == "mxf8f6f4" else 1 for one in (self.a, self.b)]
        turns = (self.a_layout is not None and self.a_layout.transposed, self.b_layout.transposed)
        fields = {
            **{4: self.firsts[1], 7: types[0], 10: types[1], 13: int(self.signs[0] < 0)},
            **{14: int(self.signs[1] < 0), 15: int(turns[0]), 16: int(turns[1])},
            **{17: self.columns >> 3, 23: _TYPES_OF_SCALES[self.scale][0], 27: LANES >> 7},
            29: self.firsts[0],
        }
        return sum(value << first for first, value in fields.items())

    @property
    def name(self) -> str:
        """What is special about it."""
        where = "shared" if self.a_layout is not None else "tensor memory"
        layouts = [one for one in (self.a_layout, self.b_layout) if one is not None]
        turned = "".join("t" if one.transposed else "n" for one in layouts)
        return (
            f"{self.kind}.{self.vector} n{self.columns} {self.a}.{self.b} {self.scale}"
            f" at {self.firsts} {where} {turned} signs {self.signs}"
        )


@dataclass(frozen=True)
class ScaledRow:
    """One instruction with values: words that the kernel reads, and D in the end."""

    form: ScaledForm
    words: Array
    expected: Array


def _scales(random: np.random.Generator, form: ScaledForm, lines: int) -> tuple[Array, Array]:
    """Return the codes of scales (lines, count), and their values."""
    dtype = _TYPES_OF_SCALES[form.scale][1]
    values = np.array([0.5, 1, 2, 4] if form.scale == "ue8m0" else [0.5, 0.75, 1, 1.5, 3])
    found = random.choice(values, (lines, form.count)).astype(dtype)
    return found.view(np.uint8), found.astype(float)


def _scale_words(random: np.random.Generator, codes: Array, first: int) -> Array:
    """Return words of tensor memory (128, columns): each quarter of the lanes has all scales."""
    lines, count = codes.shape
    columns = -(-lines // 32)
    found = random.integers(0, 256, (LANES, columns, 4), dtype=np.uint8)
    for line in range(lines):
        for quarter in range(4):
            found[32 * quarter + line % 32, line // 32, first : first + count] = codes[line]
    return found.view(np.uint32)[..., 0]


def _image(codes: Array, form: ScaledForm, kind: str, layout: TensorLayout) -> Array:
    if form.kind == "mxf8f6f4":
        return image_of(codes, bits_of(kind), layout)
    pairs = codes[:, ::2] | codes[:, 1::2] << 4
    return image_of(pairs, 8, layout)


def _row(form: ScaledForm) -> ScaledRow:
    random = np.random.default_rng(form.columns + form.count + form.firsts[0])
    a, b = (
        random.integers(-3, 3, (lines, form.depth), endpoint=True).astype(DTYPES[kind])
        for lines, kind in ((LANES, form.a), (form.columns, form.b))
    )
    before = random.integers(-3, 3, (LANES, form.columns)).astype(np.float32)
    of_a, of_b = (_scales(random, form, lines) for lines in (LANES, form.columns))
    left, right = (
        sign * one.astype(float) * np.repeat(scales[1], form.depth // form.count, axis=1)
        for sign, one, scales in zip(form.signs, (a, b), (of_a, of_b), strict=True)
    )
    expected = (left @ right.T + before).astype(np.float32)
    image, in_memory = np.zeros(PLACE_BYTES, np.uint8), np.zeros((LANES, COLUMNS_OF_A), np.uint32)
    if form.a_layout is not None:
        image = _image(codes_of(a), form, form.a, form.a_layout)
    else:
        in_memory = in_tensor_memory(codes_of(a), form.place_bits)
    scales = np.zeros((LANES, COLUMNS_OF_SCALES), np.uint32)
    scales[:, :4] = _scale_words(random, of_a[0], form.firsts[0])
    words_of_b = _scale_words(random, of_b[0], form.firsts[1])
    scales[:, 4 : 4 + words_of_b.shape[1]] = words_of_b
    words = [image.view(np.uint32)]
    words.append(_image(codes_of(b), form, form.b, form.b_layout).view(np.uint32))
    words += [in_memory.ravel(), scales.ravel(), before.view(np.uint32).ravel()]
    return ScaledRow(form, np.concatenate(words), expected.view(np.uint32))


_MX = ScaledForm()
_FP4 = ScaledForm("mxf4", "e2m1", "e2m1", "", 2)
_NV = ScaledForm("mxf4nvf4", "e2m1", "e2m1", ".scale_vec::4X", 4, "ue4m3")
_TURNED = TensorLayout(transposed=True)
SCALED_ROWS = tuple(
    _row(form)
    for form in (
        *(replace(_MX, a=a, b=b) for a in _NUMBERS for b in ("e4m3", "e2m1", "e3m2")),
        *(replace(_MX, firsts=firsts) for firsts in ((1, 2), (3, 0), (2, 3))),
        *(replace(_MX, columns=n, vector=".scale_vec::1X") for n in (8, 40, 128, 256)),
        replace(_MX, a_layout=None, firsts=(1, 0)),
        *(replace(_MX, a_layout=_TURNED), replace(_MX, b_layout=_TURNED)),
        replace(_MX, signs=(-1, 1)),
        *(replace(_FP4, firsts=firsts) for firsts in ((0, 0), (2, 0), (0, 2))),
        *(replace(_FP4, columns=n, vector=".scale_vec::2X") for n in (24, 256)),
        replace(_FP4, a_layout=None, signs=(1, -1)),
        replace(_FP4, a_layout=TensorLayout(64), b_layout=TensorLayout(16)),
        *(_NV, replace(_NV, scale="ue8m0"), replace(_NV, a_layout=None, columns=72)),
        replace(_NV, vector=".scale_vec::2X", count=2, scale="ue8m0", firsts=(2, 2)),
    )
)
"""Every kind, with every number of scales."""


def _instruction(form: ScaledForm) -> str:
    item, words = 1, PLACE_BYTES // 4
    depth = form.depth * form.place_bits // 8
    left, a = "[%1]", f'"r"(all + {A_COLUMN})'
    if form.a_layout is not None:
        left, a = "%1", f'"l"(base + {form.a_layout.descriptor((LANES, depth, item))}ull)'
    b = f"base + {words * 4 >> 4} + {form.b_layout.descriptor((form.columns, depth, item))}ull"
    given = ['"r"(all)', a, f'"l"({b})', f'"r"({form.instruction}u)']
    given += [f'"r"(all + {SCALES_COLUMN})', f'"r"(all + {SCALES_COLUMN + 4})', '"r"(1)']
    text = (
        "{.reg .pred p; setp.ne.b32 p, %6, 0;\\n tcgen05.mma.cta_group::1"
        f".kind::{form.kind}.block_scale{form.vector} [%0], {left}, %2, %3, [%4], [%5], p;}}"
    )
    return f'asm volatile("{text}" :: {", ".join(given)});'


def _block(number: int, row: ScaledRow, first: int, out: int) -> str:
    form, words = row.form, PLACE_BYTES // 4
    scales = 2 * words + LANES * COLUMNS_OF_A
    lines = [
        f"in += {first}; out += {out};",
        f"fill(tile, in, {words}); fill(tile + {words}, in + {words}, {words});",
        stored(A_COLUMN, COLUMNS_OF_A, 2 * words),
        stored(SCALES_COLUMN, COLUMNS_OF_SCALES, scales),
        stored(0, form.columns, scales + LANES * COLUMNS_OF_SCALES),
        GIVEN_AWAY,
        f"if (threadIdx.x == 0) {{ after_sync(); {_instruction(form)} commit(bar); }}",
        taken_back(number, form.columns),
    ]
    return row_function(number, lines)


@dataclass(frozen=True)
class CopyRow:
    """One tcgen05.cp."""

    shape: str
    rows: int
    bits: int
    layout: TensorLayout = PLAIN

    @property
    def name(self) -> str:
        """The shape that is copied, and how it lies in shared memory."""
        return f"{self.shape} {self.layout.swizzle} bytes at step {self.layout.step}"

    @property
    def source(self) -> Array:
        """The bytes of the rows."""
        random = np.random.default_rng(self.rows)
        return random.integers(0, 256, (self.rows, self.bits // 8), dtype=np.uint8)

    @property
    def words(self) -> Array:
        """The bytes as they lie in shared memory."""
        return image_of(self.source, 8, self.layout).view(np.uint32)

    @property
    def expected(self) -> Array:
        """What the lanes get: (128, columns)."""
        words = self.source.view(np.uint32)
        first, second = words[:32], words[32:64]
        match self.shape:
            case "32x128b.warpx4":
                return np.concatenate([first] * 4)
            case "64x128b.warpx2::02_13":
                return np.concatenate([first, second, first, second])
            case "64x128b.warpx2::01_23":
                return np.concatenate([first, first, second, second])
            case _:
                return words


COPY_ROWS = tuple(
    CopyRow(shape, rows, bits, layout)
    for shape, rows, bits in (
        *(("128x256b", 128, 256), ("128x128b", 128, 128), ("32x128b.warpx4", 32, 128)),
        *(("64x128b.warpx2::02_13", 64, 128), ("64x128b.warpx2::01_23", 64, 128)),
    )
    for layout in (TensorLayout(16), PLAIN, TensorLayout(64, step=1))
)
"""Every shape that the simulator copies."""


def _copy_block(number: int, row: CopyRow, first: int, out: int) -> str:
    descriptor = row.layout.descriptor((row.rows, row.bits // 8, 1))
    copy = (
        f'asm volatile("tcgen05.cp.cta_group::1.{row.shape} [%0], %1;"'
        f' :: "r"(all), "l"(base + {descriptor}ull) : "memory");'
    )
    lines = [
        f"in += {first}; out += {out}; fill(tile, in, {PLACE_BYTES // 4});",
        GIVEN_AWAY,
        f"if (threadIdx.x == 0) {{ after_sync(); {copy} commit(bar); }}",
        taken_back(number, row.bits // 32),
    ]
    return row_function(number, lines)


def scaled_case(rows: Sequence[ScaledRow | CopyRow]) -> SimCase:
    """Return one kernel of one warpgroup that runs every row."""
    words, outputs, blocks = 0, 0, list[str]()
    for number, row in enumerate(rows):
        if isinstance(row, CopyRow):
            blocks.append(_copy_block(number, row, words, outputs))
        else:
            blocks.append(_block(number, row, words, outputs))
        words += len(row.words)
        outputs += row.expected.size
    return rows_case(blocks, np.concatenate([row.words for row in rows]), outputs)


def scaled_results(rows: Sequence[ScaledRow | CopyRow], out: Array) -> list[Array]:
    """Return what each row left in tensor memory."""
    ends = np.cumsum([row.expected.size for row in rows])
    parts = np.split(out.view(np.uint32), ends[:-1])
    return [part.reshape(row.expected.shape) for row, part in zip(rows, parts, strict=True)]
