"""Every shape of nvcuda::wmma in one kernel, with whole numbers, of which no sum is rounded."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from .sim_run import Array, SimCase

_KINDS: dict[str, tuple[str, Any]] = {
    "half": ("__half", np.float16),
    "bfloat16": ("__nv_bfloat16", ml_dtypes.bfloat16),
    "tf32": ("float", np.float32),
    "double": ("double", np.float64),
    "signed": ("signed char", np.int8),
    "unsigned": ("unsigned char", np.uint8),
    "float": ("float", np.float32),
    "int": ("int", np.int32),
}
"""The type in memory and its dtype."""
_LINE_BYTES = 16
_BLOCK_BYTES = 32


@dataclass(frozen=True)
class WmmaForm:
    """D = A * B + C of one shape, with the layouts of A, B and the sums."""

    sizes: tuple[int, int, int]
    factor: str
    before: str
    after: str
    layouts: str
    """r (by rows) or c (by columns) of A, B, and C and D."""

    @property
    def name(self) -> str:
        """The shape, the types and the layouts."""
        m, n, k = self.sizes
        return f"m{m}n{n}k{k} {self.after} = {self.factor} + {self.before} {self.layouts}"


def _forms() -> Iterator[WmmaForm]:
    shapes = ((16, 16, 16), (32, 8, 16), (8, 32, 16))
    for sizes in shapes:
        for layouts in ("rrr", "rcc", "crr", "ccc"):
            yield WmmaForm(sizes, "half", "float", "float", layouts)
            yield WmmaForm(sizes, "signed", "int", "int", layouts)
        for before, after in (("half", "half"), ("half", "float"), ("float", "half")):
            yield WmmaForm(sizes, "half", before, after, "rcr")
        yield WmmaForm(sizes, "bfloat16", "float", "float", "rcr")
        yield WmmaForm(sizes, "unsigned", "int", "int", "rrr")
    for layouts in ("rrr", "ccc"):
        yield WmmaForm((16, 16, 8), "tf32", "float", "float", layouts)
        yield WmmaForm((8, 8, 4), "double", "double", "double", layouts)


WMMA_FORMS = tuple(_forms())


def _factors(form: WmmaForm) -> list[Array]:
    """Return A, B and C."""
    m, n, k = form.sizes
    random = np.random.default_rng(sum(map(ord, form.name)))
    least = 0 if form.factor == "unsigned" else -3
    shapes = (((m, k), form.factor), ((k, n), form.factor), ((m, n), form.before))
    return [
        random.integers(least, 3, shape, endpoint=True).astype(_KINDS[kind][1])
        for shape, kind in shapes
    ]


def _in_memory(matrix: Array, layout: str) -> tuple[bytes, int]:
    """Return a matrix line by line, each with room behind it, and the elements of a line."""
    lines = matrix if layout == "r" else matrix.T
    width = (lines.shape[1] * matrix.itemsize // _LINE_BYTES + 1) * _LINE_BYTES // matrix.itemsize
    padded = np.zeros((len(lines), width), matrix.dtype)
    padded[:, : lines.shape[1]] = lines
    data = padded.tobytes()
    return data + bytes(-len(data) % _BLOCK_BYTES), width


def _fragment(form: WmmaForm, use: str, kind: str, layout: str) -> str:
    words = [f"wmma::{use}", *map(str, form.sizes)]
    words.append("wmma::precision::tf32" if kind == "tf32" else _KINDS[kind][0])
    if use != "accumulator":
        words.append("wmma::row_major" if layout == "r" else "wmma::col_major")
    return f"wmma::fragment<{', '.join(words)}>"


def _sums(form: WmmaForm) -> str:
    return f"wmma::mem_{'row' if form.layouts[2] == 'r' else 'col'}_major"


def wmma_case() -> SimCase:
    """Return the kernel; `wmma_results` reads what it leaves."""
    data, out = b"", 0
    blocks: list[str] = []
    for form in WMMA_FORMS:
        parts = [
            ("a", "matrix_a", form.factor, form.layouts[0]),
            ("b", "matrix_b", form.factor, form.layouts[1]),
            ("c", "accumulator", form.before, form.layouts[2]),
        ]
        code = [f"{_fragment(form, 'accumulator', form.after, '')} d;"]
        for (name, use, kind, layout), matrix in zip(parts, _factors(form), strict=True):
            given, width = _in_memory(matrix, layout)
            order = f", {_sums(form)}" if use == "accumulator" else ""
            place = f"reinterpret_cast<const {_KINDS[kind][0]}*>(in + {len(data) // 2})"
            code.append(
                f"{_fragment(form, use, kind, layout)} {name};"
                f" wmma::load_matrix_sync({name}, {place}, {width}{order});"
            )
            data += given
        m, n, _ = form.sizes
        width = n if form.layouts[2] == "r" else m
        target = f"reinterpret_cast<{_KINDS[form.after][0]}*>(out + {out // 2})"
        code.append("wmma::mma_sync(d, a, b, c);")
        code.append(f"wmma::store_matrix_sync({target}, d, {width}, {_sums(form)});")
        blocks.append(f"{{ {' '.join(code)} }}")
        out += m * n * np.dtype(_KINDS[form.after][1]).itemsize
    body = "\n  ".join(blocks)
    source = (
        "#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n#include <mma.h>\n"
        "using namespace nvcuda;\n"
        f'extern "C" __global__ void k(const __half* in, __half* out) {{\n  {body}\n}}'
    )
    inputs = {"in": np.frombuffer(data, np.float16)}
    return SimCase(source, inputs=inputs, outputs={"out": np.zeros(out // 2, np.float16)})


def wmma_results(out: Array) -> dict[str, tuple[Array, Array]]:
    """Return D as the kernel left it and as it should be, by the name of the form."""
    found: dict[str, tuple[Array, Array]] = {}
    data = out.tobytes()
    for form in WMMA_FORMS:
        m, n, _ = form.sizes
        dtype = np.dtype(_KINDS[form.after][1])
        size = m * n * dtype.itemsize
        matrix = np.frombuffer(data[:size], dtype)
        data = data[size:]
        matrix = matrix.reshape(m, n) if form.layouts[2] == "r" else matrix.reshape(n, m).T
        a, b, c = (one.astype(np.float64) for one in _factors(form))
        found[form.name] = matrix, (a @ b + c).astype(dtype)
    return found
