"""The forms of mma.sync, each with whole numbers, of which no sum is rounded, and with others.

Where the elements of a fragment lie is written here as the PTX ISA has it, by element, in section
9.7.14.5 (Matrix Fragments for mma).
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from .sim_run import Array
from .warp_rows import LANES, WarpRow

Place = Callable[[int, int, int], tuple[int, int]]
"""Row and column of element i of lane 4 * group + t: place(group, t, i)."""

_DTYPES: dict[str, Any] = {
    **{"f16": np.float16, "bf16": ml_dtypes.bfloat16, "tf32": np.float32, "f64": np.float64},
    **{"e4m3": ml_dtypes.float8_e4m3fn, "e5m2": ml_dtypes.float8_e5m2},
    **{"s8": np.int8, "u8": np.uint8, "f32": np.float32, "s32": np.int32},
}


@dataclass(frozen=True)
class _Layout:
    """Where the fragments of A and B lie; those of C and D lie alike in all m16n8k* shapes."""

    a: Place
    b: Place


_LAYOUTS = {
    ("m8n8k4", 64): _Layout(lambda g, t, i: (g, t), lambda g, t, i: (t, g)),
    ("m16n8k4", 32): _Layout(lambda g, t, i: (g + 8 if i else g, t), lambda g, t, i: (t, g)),
    ("m16n8k8", 32): _Layout(
        lambda g, t, i: (g if i in (0, 2) else g + 8, t if i < 2 else t + 4),
        lambda g, t, i: (t if i == 0 else t + 4, g),
    ),
    ("m16n8k8", 16): _Layout(
        lambda g, t, i: (g if i < 2 else g + 8, t * 2 + (i & 1)),
        lambda g, t, i: (t * 2 + i, g),
    ),
    ("m16n8k16", 16): _Layout(
        lambda g, t, i: (
            g if 0 <= i < 2 or 4 <= i < 6 else g + 8,
            t * 2 + (i & 1) if i < 4 else t * 2 + (i & 1) + 8,
        ),
        lambda g, t, i: (t * 2 + (i & 1) if i < 2 else t * 2 + (i & 1) + 8, g),
    ),
    ("m16n8k16", 8): _Layout(
        lambda g, t, i: (g if i < 4 else g + 8, t * 4 + (i & 3)),
        lambda g, t, i: (t * 4 + i, g),
    ),
    ("m16n8k32", 8): _Layout(
        lambda g, t, i: (
            g if 0 <= i < 4 or 8 <= i < 12 else g + 8,
            t * 4 + (i & 3) if i < 8 else t * 4 + (i & 3) + 16,
        ),
        lambda g, t, i: (t * 4 + (i & 3) if i < 4 else t * 4 + (i & 3) + 16, g),
    ),
}


def _of_sums(g: int, t: int, i: int) -> tuple[int, int]:
    return (g if i < 2 else g + 8, t * 2 + (i & 1))


def fragment(matrix: Array, place: Place) -> list[Array]:
    """Return the registers of a matrix: one array of 32 words each, of 64 bits for doubles."""
    count = matrix.size // LANES
    elements = np.empty((LANES, count), matrix.dtype)
    for lane in range(LANES):
        for i in range(count):
            elements[lane, i] = matrix[place(lane // 4, lane % 4, i)]
    word = np.uint64 if matrix.dtype == np.float64 else np.uint32
    return list(elements.view(word).T.copy())


@dataclass(frozen=True)
class _Form:
    """One form of the instruction."""

    shape: str
    a: str
    b: str
    sums: str
    how: str = ""
    least_arch: int = 80

    @property
    def bits(self) -> int:
        """The width of an element of A and B."""
        return int(np.dtype(_DTYPES[self.a]).itemsize) * 8

    @property
    def sizes(self) -> tuple[int, int]:
        """The rows of A, and k."""
        rows, depth = self.shape.removeprefix("m").split("n8k")
        return int(rows), int(depth)

    @property
    def name(self) -> str:
        """The opcode with its modifiers."""
        kinds = f"{self.sums}.{self.a}.{self.b}.{self.sums}"
        return f"mma.sync.aligned.{self.shape}.row.col{self.how}.{kinds}"


_FORMS = (
    *(
        _Form(shape, "f16", "f16", sums)
        for shape in ("m16n8k8", "m16n8k16")
        for sums in ("f32", "f16")
    ),
    *(_Form(shape, "bf16", "bf16", "f32") for shape in ("m16n8k8", "m16n8k16")),
    *(_Form(shape, "tf32", "tf32", "f32") for shape in ("m16n8k4", "m16n8k8")),
    _Form("m8n8k4", "f64", "f64", "f64"),
    *(
        _Form(shape, a, b, sums, least_arch=89)
        for shape in ("m16n8k16", "m16n8k32")
        for a, b in (("e4m3", "e4m3"), ("e5m2", "e4m3"), ("e5m2", "e5m2"))
        for sums in ("f32", "f16")
    ),
    *(
        _Form(shape, a, b, "s32", how)
        for shape in ("m16n8k16", "m16n8k32")
        for a, b in (("s8", "s8"), ("u8", "s8"), ("s8", "u8"), ("u8", "u8"))
        for how in ("", ".satfinite")
    ),
)
_ERRORS = {"f32": 1e-5, "f16": 4e-3, "f64": 1e-14}


def _text(form: _Form, counts: Sequence[int]) -> str:
    numbers = itertools.count()
    places = (", ".join(f"%{next(numbers)}" for _ in range(count)) for count in counts)
    return f"{form.name} {', '.join(f'{{{place}}}' for place in places)};"


def _row(form: _Form, given: Sequence[Array], note: str, error: float = 0.0) -> WarpRow:
    """Return the row of D = A * B + C."""
    exact = np.int64 if form.sums == "s32" else np.float64
    a, b, c = (one.astype(exact) for one in given)
    if form.a == "tf32":  # the lower 13 bits of a factor mean nothing
        a, b = (
            (one.view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32).astype(exact)
            for one in given[:2]
        )
    sums = a @ b + c
    if form.how == ".satfinite":
        sums = np.clip(sums, -(1 << 31), (1 << 31) - 1)
    layout, element = _LAYOUTS[form.shape, form.bits], _DTYPES[form.sums]
    parts = [
        fragment(matrix, place)
        for matrix, place in zip(
            (sums.astype(element), *given), (_of_sums, layout.a, layout.b, _of_sums), strict=True
        )
    ]
    kind = {"f32": "f", "f64": "d"}.get(form.sums, "r")
    factor = "d" if form.a == "f64" else "r"
    letters = (kind, factor, factor, kind)
    d, *sources = (
        [(letter, one) for one in part] for letter, part in zip(letters, parts, strict=True)
    )
    return WarpRow(
        f"{form.name} {note}",
        _text(form, [len(part) for part in parts]),
        tuple(one for part in sources for one in part),
        tuple(d),
        error,
        element,
        form.least_arch,
    )


def _shapes(form: _Form) -> list[tuple[tuple[int, int], Any]]:
    """Return the shape and the dtype of A, B and C."""
    rows, depth = form.sizes
    shapes = [(rows, depth), (depth, 8), (rows, 8)]
    kinds = (form.a, form.b, form.sums)
    return [(shape, _DTYPES[kind]) for shape, kind in zip(shapes, kinds, strict=True)]


def _whole_numbers(random: np.random.Generator, shape: tuple[int, int], dtype: Any) -> Array:
    if np.dtype(dtype).kind not in "iu":
        small: Array = random.integers(-3, 3, shape, endpoint=True).astype(dtype)
        return small
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    return np.asarray(random.integers(least, most + 1, shape), dtype)


def _of_whole_numbers(form: _Form) -> WarpRow:
    """Return a row of which no sum is rounded, in whatever order: small numbers, any bytes."""
    random = np.random.default_rng(len(form.name))
    given = [_whole_numbers(random, shape, dtype) for shape, dtype in _shapes(form)]
    if form.a == "tf32":
        for one in given[:2]:
            one.view(np.uint32)[:] |= random.integers(0, 1 << 13, one.shape, dtype=np.uint32)
    return _row(form, given, "of whole numbers")


def _at_the_bounds(form: _Form) -> WarpRow:
    """Return a row of integers whose sums lie beyond the bounds of 32 bits, on both sides."""
    shapes = _shapes(form)
    a, b = (np.full(shape, np.iinfo(dtype).max, dtype) for shape, dtype in shapes[:2])
    c = np.full(shapes[2][0], np.iinfo(np.int32).max, np.int32)
    if form.a == "s8":
        a[::2] = -128
        c[::2] = np.iinfo(np.int32).min
    return _row(form, [a, b, c], "beyond the bounds")


def _of_fractions(form: _Form) -> WarpRow:
    """Return a row whose sums are rounded."""
    random = np.random.default_rng(len(form.name))
    given = [random.uniform(-1, 1, shape).astype(dtype) for shape, dtype in _shapes(form)]
    return _row(form, given, "of fractions", _ERRORS[form.sums])


def _of_subnormals() -> WarpRow:
    """Return a row of halves that are subnormal, by large ones."""
    random = np.random.default_rng(0)
    form = _Form("m16n8k16", "f16", "f16", "f32")
    (a_shape, _), (b_shape, _), (c_shape, _) = _shapes(form)
    a = (random.integers(-9, 9, a_shape) * 2.0**-24).astype(np.float16)
    b = (random.integers(-3, 3, b_shape) * 2.0**13).astype(np.float16)
    return _row(form, [a, b, np.zeros(c_shape, np.float32)], "of subnormal halves")


MMA_ROWS = (
    *map(_of_whole_numbers, _FORMS),
    *(_of_fractions(form) for form in _FORMS if form.sums != "s32"),
    *(_at_the_bounds(form) for form in _FORMS if form.sums == "s32"),
    _of_subnormals(),
)
"""Every form that the simulator runs."""
