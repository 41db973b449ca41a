"""Kernels of reductions, in three schemes that the sizes choose between.

A thread for each result, where results are many or what they are made of is short; a block for
each, whose threads' states are merged in shared memory; or several blocks for each, whose states
a second launch merges, where results are few and what they are made of is very long.
"""

from collections.abc import Sequence
from dataclasses import replace

from .body import Body
from .buffers import Buffer, Grid, per_element
from .cuda_types import cast, computed
from .program import Epilogue, LoweredProgram, Pending, has_pending, store
from .reduction import Reduction
from .sizes import PARTS, literal, product
from .values import Index, Stored, Value

SHORT = 32
"""Elements up to which a thread reduces them alone, however few results there are."""
FEW_LONG = (512, 65_536)
"""Fewer results than the first, of more elements than the second, take two launches."""
MANY = 8_192
"""Results that keep a GPU busy with a thread each."""


def reduced(program: LoweredProgram, reduction: Reduction, name: str) -> tuple[Value, ...]:
    """Return the results of a reduction; the kernels of several are written at once."""
    in_row = program.reduced_in_row(reduction, name)
    if in_row is not None:
        return in_row
    if has_pending(reduction.value):
        reduction = replace(reduction, value=program.realise(reduction.value))
    if len(reduction.dtypes) == 1:

        def write(body: Body, epilogue: Epilogue) -> Grid:
            return _write(program, reduction, body, epilogue)

        return (Pending(program, name, reduction.shape, reduction.dtypes[0], write),)
    targets = [
        program.scratch(program.unique(f"{name}_{word}"), dtype, reduction.shape)
        for dtype, word in zip(reduction.dtypes, ("first", "second", "third"), strict=False)
    ]
    program.kernel(name, lambda body: _write(program, reduction, body, targets))
    return tuple(Stored(target, reduction.shape) for target in targets)


_Targets = Epilogue | list[Buffer]


def _write(program: LoweredProgram, reduction: Reduction, body: Body, targets: _Targets) -> Grid:
    sizes = program.sizes
    results, length = sizes.elements(reduction.outer), sizes.elements(reduction.inner)
    keeps_last = not reduction.dims or reduction.dims[-1] != len(reduction.value.shape) - 1
    body.spans.append((product(reduction.outer),))
    if length <= SHORT or (results >= MANY and (keeps_last or length <= 4 * SHORT)):
        return _by_thread(reduction, body, targets)
    if results < FEW_LONG[0] and length > FEW_LONG[1] and reduction.fold.numbers:
        return _by_parts(program, reduction, body, targets)
    return _by_block(reduction, body, targets)


def _finish(reduction: Reduction, body: Body, kept: Index, targets: _Targets) -> None:
    """Write the statements that compute and store the results."""
    index = reduction.result_index(kept)
    values: list[str] = []
    for text, dtype in zip(reduction.fold.results, reduction.dtypes, strict=False):
        code = text.format(T=reduction.element, count=product(reduction.inner).code)
        made = reduction.element if dtype not in ("bool", "int64") else "auto"
        name = body.fresh("result")
        body.line(f"const {made} {name} = {code};")
        values.append(body.let(computed(dtype), cast(name, sum_dtype(reduction.element), dtype)))
    if isinstance(targets, Epilogue):
        targets.store(body, index, values[0])
        return
    for target, value in zip(targets, values, strict=True):
        store(body, target, index, value)


def _add(reduction: Reduction, body: Body, index: Index, order: str) -> None:
    """Write the statement that adds an element to `state`."""
    body.line(f"state.add({added(reduction, body, index, order)});")


def added(reduction: Reduction, body: Body, index: Index, order: str) -> str:
    """Return the arguments with which an element is added to a state."""
    value = reduction.value
    source = value.dtype
    name = value.at(body, index)
    element = name
    if reduction.element != "float" or source not in ("float16", "bfloat16", "float32"):
        element = cast(name, source, sum_dtype(reduction.element))
    text = reduction.prepare.format(element, T=reduction.element)
    if reduction.fold.needs_index:
        at = order if reduction.position is None else reduction.position(body, index)
        text += f", {at}"
    return text


def _loops(reduction: Reduction, body: Body, kept: Index) -> None:
    """Write nested loops over all reduced elements."""
    names = [body.fresh("r") for _ in reduction.dims]
    _nested(reduction, body, kept, names)


def _nested(
    reduction: Reduction, body: Body, kept: Index, names: Sequence[str], depth: int = 0
) -> None:
    if depth == len(names):
        order = body.position(names, reduction.inner)
        _add(reduction, body, reduction.index(kept, names), order)
        return
    name, extent = names[depth], reduction.inner[depth]
    with body.block(f"for (Index {name} = 0; {name} < {extent.code}; ++{name})"):
        _nested(reduction, body, kept, names, depth + 1)


def _by_thread(reduction: Reduction, body: Body, targets: _Targets) -> Grid:
    count = product(reduction.outer)
    body.line("const Index o = Index(blockIdx.x) * blockDim.x + threadIdx.x;")
    body.line(f"if (o >= {count.code}) return;")
    kept = _kept(reduction, body)
    body.line(f"{reduction.state} state = {reduction.state}::start();")
    _loops(reduction, body, kept)
    _finish(reduction, body, kept, targets)
    return per_element(count)


def _kept(reduction: Reduction, body: Body) -> Index:
    """Return the indices of the result `o`."""
    kept = body.split("o", reduction.outer)
    body.linear[reduction.result_index(kept)] = (reduction.shape, "o")
    return kept


def _strided(reduction: Reduction, body: Body, kept: Index, run: tuple[str, str]) -> None:
    """Write the loop of one thread over every so many-th element."""
    first, step = run
    head = f"for (Index r = {first}; r < {product(reduction.inner).code}; r += {step})"
    with body.block(head):
        names = body.split("r", reduction.inner)
        _add(reduction, body, reduction.index(kept, names), "r")


def _by_block(reduction: Reduction, body: Body, targets: _Targets) -> Grid:
    body.line("const Index o = blockIdx.x;")
    kept = _kept(reduction, body)
    body.line(f"{reduction.state} state = {reduction.state}::start();")
    _strided(reduction, body, kept, ("threadIdx.x", "REDUCE"))
    body.line("state = op::merged_in_block(state);")
    with body.block("if (threadIdx.x == 0)"):
        _finish(reduction, body, kept, targets)
    return Grid(product(reduction.outer).header, "REDUCE", "__launch_bounds__(REDUCE) ")


def _by_parts(program: LoweredProgram, reduction: Reduction, body: Body, targets: _Targets) -> Grid:
    """Write the first launch at once, and the second into `body`."""
    numbers = reduction.fold.numbers
    dtype = sum_dtype(reduction.element)
    shape = (product(reduction.outer), PARTS, literal(numbers))
    partial = program.scratch(program.unique("partial"), dtype, shape)

    def write(first: Body) -> Grid:
        first.spans.append((product(reduction.inner),))
        first.line("const Index o = blockIdx.x / PARTS;")
        first.line("const Index part = blockIdx.x % PARTS;")
        kept = _kept(reduction, first)
        first.line(f"{reduction.state} state = {reduction.state}::start();")
        start = "part * REDUCE + threadIdx.x"
        _strided(reduction, first, kept, (start, "PARTS * REDUCE"))
        first.line("state = op::merged_in_block(state);")
        pointer = first.pointer(partial)
        first.written.add(partial)
        first.line(
            f"if (threadIdx.x == 0) reinterpret_cast<{reduction.state}*>({pointer})[blockIdx.x]"
            " = state;"
        )
        grid = f"{_atom(product(reduction.outer).header)} * PARTS"
        return Grid(grid, "REDUCE", "__launch_bounds__(REDUCE) ")

    program.kernel("partial", write)
    pointer = body.pointer(partial)
    body.line("const Index o = blockIdx.x;")
    kept = _kept(reduction, body)
    body.line(f"{reduction.state} state = {reduction.state}::start();")
    with body.block("for (int part = threadIdx.x; part < PARTS; part += REDUCE)"):
        states = f"reinterpret_cast<const {reduction.state}*>({pointer})"
        body.line(f"state.merge({states}[o * PARTS + part]);")
    body.line("state = op::merged_in_block(state);")
    with body.block("if (threadIdx.x == 0)"):
        _finish(reduction, body, kept, targets)
    return Grid(product(reduction.outer).header, "REDUCE", "__launch_bounds__(REDUCE) ")


def sum_dtype(element: str) -> str:
    """Return the dtype of elements of a C++ type in which sums are taken."""
    return {"double": "float64", "float": "float32"}.get(element, "int64")


def _atom(header: str) -> str:
    return f"({header})" if " " in header else header
