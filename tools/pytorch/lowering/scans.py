"""Running sums and products along one dimension.

A thread for each line where lines are short or side by side in memory, else a block for each,
which scans pieces of the line one after another.
"""

from collections.abc import Callable

from .body import Body
from .buffers import Buffer, Grid, per_element
from .call import Call
from .cuda_types import accumulated, cast
from .program import store
from .sizes import Shape, product
from .values import Index, Stored, Value, converted

Lowering = Callable[[Call], Value]
_SHORT = 64
"""Elements below which a thread scans a line alone, though its neighbours lie far away."""


def _scan(sign: str, start: str) -> Lowering:
    def lower(call: Call) -> Value:
        value = converted(call.value(0), call.dtype, call.sizes)
        if not value.shape:
            return value
        dim = call.dim(1, len(value.shape))
        target = call.program.scratch(call.program.unique(call.node.name), call.dtype, value.shape)
        lines = tuple(extent for place, extent in enumerate(value.shape) if place != dim)
        scan = _Scan(value, dim, target, (sign, start))
        is_inner = dim == len(value.shape) - 1
        by_block = is_inner and call.sizes.largest(value.shape[dim]) >= _SHORT
        scheme = scan.by_block if by_block else scan.by_thread
        call.program.kernel(call.node.name, lambda body: scheme(body, lines))
        return Stored(target, value.shape)

    return lower


class _Scan:
    """One scan: its value, dimension, target and operation."""

    def __init__(self, value: Value, dim: int, target: Buffer, operation: tuple[str, str]) -> None:
        self._value = value
        self._dim = dim
        self._target = target
        self._sign, self._start = operation
        self._ctype = accumulated(value.dtype)
        self._dtype = {"float": "float32", "double": "float64"}.get(self._ctype, "int64")

    def _index(self, line: Index, at: str) -> Index:
        return (*line[: self._dim], at, *line[self._dim :])

    def _element(self, body: Body, line: Index, at: str) -> str:
        value = self._value.at(body, self._index(line, at))
        return cast(value, self._value.dtype, self._dtype)

    def _store(self, body: Body, line: Index, at: str) -> None:
        total = cast("total", self._dtype, self._target.dtype)
        store(body, self._target, self._index(line, at), total)

    def by_thread(self, body: Body, lines: Shape) -> Grid:
        """Write a thread for each line."""
        count = product(lines)
        body.line("const Index o = Index(blockIdx.x) * blockDim.x + threadIdx.x;")
        body.line(f"if (o >= {count.code}) return;")
        line = body.split("o", lines)
        body.line(f"{self._ctype} total = {self._start};")
        extent = self._value.shape[self._dim]
        with body.block(f"for (Index r = 0; r < {extent.code}; ++r)"):
            body.line(f"total {self._sign}= {self._element(body, line, 'r')};")
            self._store(body, line, "r")
        return per_element(count)

    def by_block(self, body: Body, lines: Shape) -> Grid:
        """Write a block for each line: each piece is scanned in log2(REDUCE) steps."""
        extent = self._value.shape[self._dim].code
        body.line(f"__shared__ {self._ctype} totals[REDUCE];")
        body.line("const Index o = blockIdx.x;")
        line = body.split("o", lines)
        body.line(f"{self._ctype} carry = {self._start};")
        with body.block(f"for (Index first = 0; first < {extent}; first += REDUCE)"):
            body.line("const Index r = first + threadIdx.x;")
            body.line(f"{self._ctype} total = {self._start};")
            with body.block(f"if (r < {extent})"):
                body.line(f"total = {self._element(body, line, 'r')};")
            body.line("totals[threadIdx.x] = total;")
            body.line("__syncthreads();  // all elements are in place")
            with body.block("for (int step = 1; step < REDUCE; step *= 2)"):
                body.line(
                    "if (threadIdx.x >= step) "
                    f"total = totals[threadIdx.x - step] {self._sign} total;"
                )
                body.line("__syncthreads();  // all have read before any writes")
                body.line("totals[threadIdx.x] = total;")
                body.line("__syncthreads();  // all have written before any reads")
            body.line(f"total = carry {self._sign} total;")
            with body.block(f"if (r < {extent})"):
                self._store(body, line, "r")
            body.line(f"carry = carry {self._sign} totals[REDUCE - 1];")
            body.line("__syncthreads();  // the last total is read before the next piece")
        return Grid(product(lines).header, "REDUCE", "__launch_bounds__(REDUCE) ")


def lowerings() -> dict[str, Lowering]:
    """Return the lowering of each operator by its name, overload included."""
    return {
        "aten.cumsum.default": _scan("+", "0"),
        "aten.cumprod.default": _scan("*", "1"),
    }
