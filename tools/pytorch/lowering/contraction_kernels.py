"""Kernels of contractions, by three schemes.

Tiles in shared memory (`contraction_tiles.py`), a thread for each result, and a block for each
where the sum is long and results few.
"""

from collections.abc import Callable
from functools import partial

from .body import Body
from .buffers import Grid, per_element
from .contraction import Contraction, element, finish
from .contraction_tiles import TILED, choose_tile, is_long, tiled
from .folds import SUM
from .program import Epilogue, LoweredProgram, Pending
from .sizes import product
from .values import Index, Value

LONG_SUM = 2_048
FEW = 16_384
"""Results below which a long sum gets a block for each."""


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
        choose_tile(program, contraction)
        return partial(tiled, in_parts=is_long(program, contraction))
    results = program.sizes.elements((contraction.batch, contraction.rows, contraction.columns))
    if largest(contraction.terms) >= LONG_SUM and results < FEW:
        return _by_block
    return _by_thread


def _product(contraction: Contraction, body: Body, index: Index, k: str) -> str:
    b, m, n = index
    left = element(contraction, contraction.left, body, (b, m, k))
    right = element(contraction, contraction.right, body, (b, k, n))
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
    finish(contraction, body, index, epilogue)
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
        finish(contraction, body, index, epilogue)
    return Grid(count.header, "REDUCE", "__launch_bounds__(REDUCE) ")
