"""Contractions by tiles: a block keeps a tile of A and of B in shared memory for TILE_K terms.

A thread has SIDE * SIDE results in registers. It reads its elements of the next tiles while the
block computes with the current ones. Rows of a thread are neighbours, so that it reads several of
A at once; its columns lie 16 apart, so that neighbouring threads write neighbours.
"""

from dataclasses import dataclass

from .body import Body
from .buffers import Grid
from .contraction import Contraction, Operand, element, finish
from .program import Epilogue, LoweredProgram
from .sizes import Size, ceil_div, product

TILED = (16, 16, 8)
"""Least m, n and k at which tiles pay."""
_TILE = Size("TILE", "TILE")
_SIDES = (128, 64, 32)
_FEW_BLOCKS = 128
"""Blocks below which smaller tiles are better: an H100 has 132 SMs."""
_MOST_PADDED = 1.1
"""Times the results that a tile of half the side computes: what lies outside is in vain."""
_MOST_IN_ONE_SUM = 16_384
_PART = 4_096
"""Terms of a partial sum where there are more than the above: a multiple of each TILE_K.

Half a million terms added one after the other lose those that are far smaller than what they are
added to; with few of them large, the result is farther off than that of any library.
"""


def choose_tile(program: LoweredProgram, contraction: Contraction) -> None:
    """Make the best tile of the contraction with most work the default of the candidate."""
    largest = program.sizes.largest
    batch, rows, columns, terms = map(
        largest, (contraction.batch, contraction.rows, contraction.columns, contraction.terms)
    )
    work = batch * rows * columns * terms
    if work < program.tiled_work:
        return
    program.tiled_work = work

    def blocks(side: int) -> int:
        return batch * -(-rows // side) * -(-columns // side)

    def is_good(side: int) -> bool:
        is_full = blocks(side) * 4 <= _MOST_PADDED * blocks(side // 2)
        return is_full and blocks(side) >= _FEW_BLOCKS

    best = next((side for side in _SIDES if is_good(side)), _SIDES[-1])
    program.tune["TILE"] = (best, *(side for side in (64, 32, 128) if side != best))


@dataclass(frozen=True)
class _Side:
    """A or B with its tile."""

    name: str
    operand: Operand
    across: str
    """m or n."""
    first: str
    extent: Size

    def index(self, b: str, at: str, k: str) -> tuple[str, str, str]:
        """Return (b, m, k) or (b, k, n)."""
        return (b, at, k) if self.across == "m" else (b, k, at)

    @property
    def at(self) -> str:
        """The name of the row or column."""
        return f"{self.name}_{self.across}"

    @property
    def k(self) -> str:
        """The name of the term."""
        return f"{self.name}_k"


def is_long(program: LoweredProgram, contraction: Contraction) -> bool:
    """Return whether the sum is taken in parts."""
    return program.sizes.largest(contraction.terms) > _MOST_IN_ONE_SUM


def tiled(
    contraction: Contraction, body: Body, epilogue: Epilogue, *, in_parts: bool = False
) -> Grid:
    """Write the statements of a block, and return its grid."""
    rows, columns = (ceil_div(one, _TILE) for one in (contraction.rows, contraction.columns))
    ctype = contraction.element
    left = _Side("left", contraction.left, "m", "row0", contraction.rows)
    right = _Side("right", contraction.right, "n", "column0", contraction.columns)
    b = "0" if contraction.batch.literal == 1 else "b"
    body.spans.append((contraction.batch, contraction.rows, contraction.columns))
    body.line("// A thread has SIDE * SIDE results: rows by VEC neighbours, columns 16 apart.")
    body.line("constexpr int SIDE = TILE / 16;")
    body.line(
        f"constexpr int VEC = SIDE * sizeof({ctype}) < 16 ? SIDE : 16 / int(sizeof({ctype}));"
    )
    body.line("constexpr int READ = TILE * TILE_K / 256;  // by each thread, of each tile")
    body.line(f"alignas(16) __shared__ {ctype} left[TILE_K][TILE + VEC];  // by k, then row")
    body.line(f"__shared__ {ctype} right[TILE_K][TILE + 1];  // by k, then column; padded")
    body.line("const int x = threadIdx.x % 16;")
    body.line("const int y = threadIdx.x / 16;")
    body.line(f"const Index column0 = blockIdx.x % ({columns.code}) * TILE;")
    body.line(f"const Index row0 = blockIdx.x / ({columns.code}) % ({rows.code}) * TILE;")
    body.line(f"const Index b = blockIdx.x / ({columns.code}) / ({rows.code});")
    body.line(f"{ctype} sums[SIDE][SIDE] = {{}};")
    if in_parts:
        body.line(f"{ctype} before[SIDE][SIDE] = {{}};  // of whole parts")
    for side in (left, right):
        if not side.operand.runs_along_k:
            body.line(f"const Index {side.at} = {side.first} + threadIdx.x % TILE;")
            side.operand.ahead(body, side.index(b, side.at, ""))
    terms = contraction.terms.code
    with body.block(f"for (Index k0 = 0; k0 < {terms} + TILE_K; k0 += TILE_K)"):
        body.line(f"{ctype} left_next[READ], right_next[READ];  // under way meanwhile")
        with body.block(f"if (k0 < {terms})"):
            for side in (left, right):
                _read(contraction, body, side, b)
        with body.block("if (k0 != 0)"):
            _multiply(contraction, body)
            if in_parts:
                _end_part(body)
        body.line("__syncthreads();  // all have read before the tiles are filled again")
        with body.block(f"if (k0 < {terms})"):
            for side in (left, right):
                _fill(body, side)
        body.line("__syncthreads();  // both tiles are whole before any of them is read")
    if in_parts:
        _each_result(body, "sums[i][j] += before[i][j];")
    _write(contraction, body, epilogue, b)
    grid = product((contraction.batch, rows, columns)).header
    return Grid(grid, "256", "__launch_bounds__(256) ")


def _read(contraction: Contraction, body: Body, side: _Side, b: str) -> None:
    """Write the loop in which a thread reads its elements of the next tile."""
    along_k = side.operand.runs_along_k
    if along_k:
        body.line(f"const Index {side.k} = k0 + threadIdx.x % TILE_K;")
        side.operand.ahead(body, side.index(b, "", side.k))
    body.line("#pragma unroll")
    with body.block("for (int i = 0; i < READ; ++i)"):
        if along_k:
            step = "threadIdx.x / TILE_K + i * (256 / TILE_K)"
            body.line(f"const Index {side.at} = {side.first} + {step};")
        else:
            body.line(f"const Index {side.k} = k0 + threadIdx.x / TILE + i * (256 / TILE);")
        body.line(f"{side.name}_next[i] = 0;")
        inside = f"{side.at} < {side.extent.code} && {side.k} < {contraction.terms.code}"
        with body.block(f"if ({inside})"):
            found = element(contraction, side.operand, body, side.index(b, side.at, side.k))
            body.line(f"{side.name}_next[i] = {found};")


def _fill(body: Body, side: _Side) -> None:
    """Write the loop in which a thread puts what it has read into a tile."""
    body.line("#pragma unroll")
    with body.block("for (int i = 0; i < READ; ++i)"):
        if side.operand.runs_along_k:
            place = "[threadIdx.x % TILE_K][threadIdx.x / TILE_K + i * (256 / TILE_K)]"
        else:
            place = "[threadIdx.x / TILE + i * (256 / TILE)][threadIdx.x % TILE]"
        body.line(f"{side.name}{place} = {side.name}_next[i];")


def _multiply(contraction: Contraction, body: Body) -> None:
    """Write the loop over the terms of a pair of tiles."""
    ctype = contraction.element
    body.line("#pragma unroll")
    with body.block("for (int k = 0; k < TILE_K; ++k)"):
        body.line(f"op::Pack<{ctype}, VEC> of_left[SIDE / VEC];")
        body.line("#pragma unroll")
        with body.block("for (int p = 0; p < SIDE / VEC; ++p)"):
            body.line("of_left[p] = op::read_pack<VEC>(&left[k][(y + 16 * p) * VEC]);")
        body.line("#pragma unroll")
        with body.block("for (int j = 0; j < SIDE; ++j)"):
            body.line(f"const {ctype} of_right = right[k][x + 16 * j];")
            body.line("#pragma unroll")
            with body.block("for (int i = 0; i < SIDE; ++i)"):
                body.line("sums[i][j] += of_left[i / VEC].at[i % VEC] * of_right;")


def _end_part(body: Body) -> None:
    """Write what ends a part of the sums after its last tile."""
    with body.block(f"if (k0 % {_PART} == 0)"):
        _each_result(body, "before[i][j] += sums[i][j];", "sums[i][j] = 0;")


def _each_result(body: Body, *lines: str) -> None:
    """Write loops over the results of a thread."""
    body.line("#pragma unroll")
    with body.block("for (int i = 0; i < SIDE; ++i)"):
        body.line("#pragma unroll")
        with body.block("for (int j = 0; j < SIDE; ++j)"):
            for line in lines:
                body.line(line)


def _write(contraction: Contraction, body: Body, epilogue: Epilogue, b: str) -> None:
    """Write the loops that store the results of a thread."""
    body.line("#pragma unroll")
    with body.block("for (int i = 0; i < SIDE; ++i)"):
        body.line("const Index m = row0 + (y + 16 * (i / VEC)) * VEC + i % VEC;")
        body.line("#pragma unroll")
        with body.block("for (int j = 0; j < SIDE; ++j)"):
            body.line("const Index n = column0 + x + 16 * j;")
            inside = f"m < {contraction.rows.code} && n < {contraction.columns.code}"
            with body.block(f"if ({inside})"):
                body.line(f"const {contraction.element} sum = sums[i][j];")
                finish(contraction, body, (b, "m", "n"), epilogue)
