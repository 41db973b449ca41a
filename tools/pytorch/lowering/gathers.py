"""Operators that read at indices which are themselves tensors; and sequences of numbers."""

from collections.abc import Callable

from .body import Body
from .call import Call
from .cuda_types import cast, computed
from .sizes import Size, shape_of
from .values import Computed, Index, Pointwise, Value, broadcast

Lowering = Callable[[Call], Value]


def _read(body: Body, indices: Value, index: Index, extent: Size) -> str:
    """Return the code of an index tensor's element, counted from the start."""
    name = indices.at(body, index)
    return body.let("Index", f"static_cast<Index>(op::wrapped({name}, {extent.code}))")


def _gather(call: Call) -> Value:
    base, indices = call.program.once(call.value(0)), call.program.once(call.value(2))
    dim = call.dim(1, len(base.shape))

    def place(body: Body, index: Index) -> Index:
        at = _read(body, indices, index, base.shape[dim])
        return (*index[:dim], at, *index[dim + 1 :])

    return _viewed(call, base, (indices,), place)


def _index_select(call: Call) -> Value:
    base, indices = call.program.once(call.value(0)), call.program.once(call.value(2))
    dim = call.dim(1, len(base.shape))

    def place(body: Body, index: Index) -> Index:
        inner = (index[dim],) if indices.shape else ()
        at = _read(body, indices, inner, base.shape[dim])
        return (*index[:dim], at, *index[dim + 1 :])

    return _viewed(call, base, (indices,), place)


def _embedding(call: Call) -> Value:
    table, indices = call.program.once(call.value(0)), call.program.once(call.value(1))

    def place(body: Body, index: Index) -> Index:
        return (_read(body, indices, index[:-1], table.shape[0]), index[-1])

    return _viewed(call, table, (indices,), place)


def _index(call: Call) -> Value:
    base = call.program.once(call.value(0))
    given = call.argument(1)
    entries = given if isinstance(given, tuple) else ()
    indices = {
        place: call.program.once(call.as_value(one))
        for place, one in enumerate(entries)
        if one is not None
    }
    if any(one.dtype == "bool" for one in indices.values()):
        call.refuse("selects by a mask, so that its shape depends on data")
    places = sorted(indices)
    is_adjacent = places == list(range(places[0], places[0] + len(places)))
    first = places[0] if is_adjacent else 0
    count = len(call.shape) - (len(base.shape) - len(places))
    shared = call.shape[first : first + count]
    frame = Pointwise(
        lambda codes: codes[0], tuple(indices.values()), "int64", shared, call.sizes, 1
    )

    def place(body: Body, index: Index) -> Index:
        rest = iter((*index[:first], *index[first + count :]))
        ours = index[first : first + count]
        result: list[str] = []
        for number, extent in enumerate(base.shape):
            if number in indices:
                one = indices[number]
                inner = broadcast(body, one.shape, frame, ours)
                result.append(_read(body, one, inner, extent))
            else:
                result.append(next(rest))
        return tuple(result)

    return _viewed(call, base, tuple(indices.values()), place)


def _viewed(
    call: Call, base: Value, reads: tuple[Value, ...], place: Callable[[Body, Index], Index]
) -> Value:
    def write(body: Body, index: Index) -> str:
        return base.at(body, place(body, index))

    cost = 2 + base.cost + sum(one.cost for one in reads)
    return Computed(write, call.shape, call.dtype, (base, *reads), cost)


def _arange(call: Call) -> Value:
    is_short = call.node.op == "aten.arange.default"
    start = call.as_value(0 if is_short else call.argument(0))
    step = call.as_value(1 if is_short else call.argument(2, "step", 1))
    ctype = computed(call.dtype)

    def write(body: Body, index: Index) -> str:
        codes = [cast(one.at(body, ()), one.dtype, call.dtype) for one in (start, step)]
        at = index[0] if index else "0"
        return f"{codes[0]} + static_cast<{ctype}>({at}) * {codes[1]}"

    return Computed(write, shape_of(call.result), call.dtype)


def lowerings() -> dict[str, Lowering]:
    """Return the lowering of each operator by its name, overload included."""
    return {
        "aten.gather.default": _gather,
        "aten.index_select.default": _index_select,
        "aten.embedding.default": _embedding,
        "aten.index.Tensor": _index,
        "aten.arange.default": _arange,
        "aten.arange.start": _arange,
        "aten.arange.start_step": _arange,
    }
