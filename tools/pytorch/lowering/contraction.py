"""Kernels of contractions: C[b, m, n] = sum over k of A[b, m, k] * B[b, k, n].

Matrix products and convolutions are such sums; they differ in where A, B and C lie, which the
operands say. Three schemes: tiles in shared memory with a square of results in each thread's
registers, a thread for each result, and a block for each where the sum is long and results few.
"""

from collections.abc import Callable
from dataclasses import dataclass

from .body import Body
from .buffers import Grid, per_element
from .cuda_types import accumulated, cast
from .folds import SUM
from .program import Epilogue, LoweredProgram, Pending
from .sizes import Shape, Size, ceil_div, product
from .values import Index, Value

TILED = (16, 16, 8)
"""Least m, n and k at which tiles pay."""
LONG_SUM = 2_048
FEW = 16_384
"""Results below which a long sum gets a block for each."""
_TILE = Size("TILE", "TILE")


@dataclass(frozen=True)
class Operand:
    """A or B: a value, and where an element of the sum is read in it."""

    value: Value
    place: Callable[[Body, Index], Index]
    """From (b, m, k) or (b, k, n) to an index of the value."""
    runs_along_k: bool
    """Whether neighbours in memory are neighbours along k."""


@dataclass(frozen=True)
class Contraction:
    """A sum of products."""

    batch: Size
    rows: Size
    columns: Size
    terms: Size
    """Extents of b, m, n and k."""
    left: Operand
    right: Operand
    shape: Shape
    """Of the result."""
    dtype: str
    target: Callable[[Body, Index], Index]
    """From (b, m, n) to an index of the result."""
    inside: Callable[[Index], str] | None = None
    """The condition under which an index is one of the result; None, or "" from it, where all are:
    extents may be rounded up."""
    is_plain_order: bool = False
    """Whether the result lies as (b, m, n), row-major."""
    start: Callable[[Body, Index, str], str] | None = None
    """What becomes of a sum, given the index of its result: scaled, added to something."""

    @property
    def element(self) -> str:
        """The C++ type in which sums are taken."""
        return accumulated(self.dtype)


def contracted(program: LoweredProgram, contraction: Contraction, name: str) -> Value:
    """Return the result of a contraction, which what follows may be joined to."""

    def write(body: Body, epilogue: Epilogue) -> Grid:
        return _scheme(program, contraction)(contraction, body, epilogue)

    return Pending(program, name, contraction.shape, contraction.dtype, write)


_Writer = Callable[[Contraction, Body, Epilogue], Grid]


def _scheme(program: LoweredProgram, contraction: Contraction) -> _Writer:
    largest = program.sizes.largest
    extents = (contraction.rows, contraction.columns, contraction.terms)
    if all(largest(size) >= least for size, least in zip(extents, TILED, strict=True)):
        return _tiled
    results = program.sizes.elements((contraction.batch, contraction.rows, contraction.columns))
    if largest(contraction.terms) >= LONG_SUM and results < FEW:
        return _by_block
    return _by_thread


def _element(contraction: Contraction, operand: Operand, body: Body, index: Index) -> str:
    value = operand.value
    name = value.at(body, operand.place(body, index))
    target = {"float": "float32", "double": "float64"}.get(contraction.element, "int64")
    return cast(name, value.dtype, target)


def _finish(contraction: Contraction, body: Body, index: Index, epilogue: Epilogue) -> None:
    """Write the statements that store the sum called `sum`."""
    target = contraction.target(body, index)
    test = "" if contraction.inside is None else contraction.inside(target)
    if test:
        with body.block(f"if ({test})"):
            _store(contraction, body, target, epilogue)
    else:
        _store(contraction, body, target, epilogue)


def _store(contraction: Contraction, body: Body, target: Index, epilogue: Epilogue) -> None:
    result = body.fresh("result")
    text = "sum" if contraction.start is None else contraction.start(body, target, "sum")
    source = {"float": "float32", "double": "float64"}.get(contraction.element, "int64")
    body.line(f"const auto {result} = {cast(text, source, contraction.dtype)};")
    epilogue.store(body, target, result)


def _product(contraction: Contraction, body: Body, index: Index, k: str) -> str:
    b, m, n = index
    left = _element(contraction, contraction.left, body, (b, m, k))
    right = _element(contraction, contraction.right, body, (b, k, n))
    return f"{left} * {right}"


def _by_thread(contraction: Contraction, body: Body, epilogue: Epilogue) -> Grid:
    extents = (contraction.batch, contraction.rows, contraction.columns)
    count = product(extents)
    body.spans.append((count,))
    body.line("const Index o = Index(blockIdx.x) * blockDim.x + threadIdx.x;")
    body.line(f"if (o >= {count.code}) return;")
    index = body.split("o", extents)
    if contraction.is_plain_order:
        body.linear[contraction.target(body, index)] = (contraction.shape, "o")
    body.line(f"{contraction.element} sum = 0;")
    with body.block(f"for (Index k = 0; k < {contraction.terms.code}; ++k)"):
        body.line(f"sum += {_product(contraction, body, index, 'k')};")
    _finish(contraction, body, index, epilogue)
    return per_element(count)


def _by_block(contraction: Contraction, body: Body, epilogue: Epilogue) -> Grid:
    extents = (contraction.batch, contraction.rows, contraction.columns)
    count = product(extents)
    state = f"op::{SUM.state}<{contraction.element}>"
    body.spans.append((count,))
    body.line("const Index o = blockIdx.x;")
    index = body.split("o", extents)
    body.line(f"{state} state = {state}::start();")
    terms = contraction.terms.code
    with body.block(f"for (Index k = threadIdx.x; k < {terms}; k += REDUCE)"):
        body.line(f"state.add({_product(contraction, body, index, 'k')});")
    body.line("state = op::merged_in_block(state);")
    with body.block("if (threadIdx.x == 0)"):
        body.line(f"const {contraction.element} sum = state.total;")
        _finish(contraction, body, index, epilogue)
    return Grid(count.header, "REDUCE", "__launch_bounds__(REDUCE) ")


def _tiled(contraction: Contraction, body: Body, epilogue: Epilogue) -> Grid:
    rows, columns = (ceil_div(one, _TILE) for one in (contraction.rows, contraction.columns))
    ctype = contraction.element
    body.spans.append((contraction.batch, contraction.rows, contraction.columns))
    body.line("// A thread has SIDE * SIDE results: rows and columns that lie 16 apart.")
    body.line("constexpr int SIDE = TILE / 16;")
    body.line(f"__shared__ {ctype} left[TILE_K][TILE + 1];  // by k, then row; padded")
    body.line(f"__shared__ {ctype} right[TILE_K][TILE + 1];  // by k, then column; padded")
    body.line("const int x = threadIdx.x % 16;")
    body.line("const int y = threadIdx.x / 16;")
    body.line(f"const Index column0 = blockIdx.x % ({columns.code}) * TILE;")
    body.line(f"const Index row0 = blockIdx.x / ({columns.code}) % ({rows.code}) * TILE;")
    body.line(f"const Index b = blockIdx.x / ({columns.code}) / ({rows.code});")
    b = "0" if contraction.batch.literal == 1 else "b"
    body.line(f"{ctype} sums[SIDE][SIDE] = {{}};")
    with body.block(f"for (Index k0 = 0; k0 < {contraction.terms.code}; k0 += TILE_K)"):
        _fill(contraction, body, "left", b)
        _fill(contraction, body, "right", b)
        body.line("__syncthreads();  // both tiles are whole before any of them is read")
        body.line("#pragma unroll")
        with body.block("for (int k = 0; k < TILE_K; ++k)"):
            body.line("#pragma unroll")
            with body.block("for (int i = 0; i < SIDE; ++i)"):
                body.line("#pragma unroll")
                with body.block("for (int j = 0; j < SIDE; ++j)"):
                    body.line("sums[i][j] += left[k][y + 16 * i] * right[k][x + 16 * j];")
        body.line("__syncthreads();  // all have read before the tiles are filled again")
    body.line("#pragma unroll")
    with body.block("for (int i = 0; i < SIDE; ++i)"):
        body.line("const Index m = row0 + y + 16 * i;")
        body.line("#pragma unroll")
        with body.block("for (int j = 0; j < SIDE; ++j)"):
            body.line("const Index n = column0 + x + 16 * j;")
            inside = f"m < {contraction.rows.code} && n < {contraction.columns.code}"
            with body.block(f"if ({inside})"):
                body.line(f"const {ctype} sum = sums[i][j];")
                _finish(contraction, body, (b, "m", "n"), epilogue)
    grid = product((contraction.batch, rows, columns)).header
    return Grid(grid, "256", "__launch_bounds__(256) ")


def _fill(contraction: Contraction, body: Body, side: str, b: str) -> None:
    """Write the loop in which all threads of a block fill one of its tiles."""
    is_left = side == "left"
    operand = contraction.left if is_left else contraction.right
    across, first, extent = (
        ("m", "row0", contraction.rows) if is_left else ("n", "column0", contraction.columns)
    )
    along_k = operand.runs_along_k
    with body.block("for (int e = threadIdx.x; e < TILE * TILE_K; e += 256)"):
        body.line(f"const int tile_k = {'e % TILE_K' if along_k else 'e / TILE'};")
        body.line(f"const int tile_at = {'e / TILE_K' if along_k else 'e % TILE'};")
        body.line(f"const Index {across} = {first} + tile_at;")
        body.line("const Index k = k0 + tile_k;")
        body.line(f"{contraction.element} element = 0;")
        with body.block(f"if ({across} < {extent.code} && k < {contraction.terms.code})"):
            index = (b, "m", "k") if is_left else (b, "k", "n")
            body.line(f"element = {_element(contraction, operand, body, index)};")
        body.line(f"{side}[tile_k][tile_at] = element;")
