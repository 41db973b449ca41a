"""Operators that move elements without computing: they become indices of whoever reads them."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from .body import Body
from .call import Call
from .program import LoweredProgram, Pending
from .sizes import ONE, Shape, Size, SizeTable, literal, product, shape_of
from .values import Constant, Index, Pointwise, Stored, Value, Viewed, converted

Lowering = Callable[[Call], Value | tuple[Value, ...]]


def reshaped(program: LoweredProgram, value: Value, shape: Shape) -> Value:
    """Return the elements of `value`, in row-major order, in another shape."""
    sizes = program.sizes
    if sizes.same_shape(value.shape, shape):
        return value
    if isinstance(value, Constant):
        return Constant(value.value, value.dtype, shape)
    if isinstance(value, Pending):
        value = value.settled()
    if isinstance(value, Stored):
        return Stored(value.buffer, shape)
    if isinstance(value, Pointwise):
        moved = _reshaped_operands(program, value, shape)
        if moved is not None:
            return moved
    groups = tuple(_groups(sizes, shape, value.shape))
    inner = value.shape

    def place(body: Body, index: Index) -> Index:
        result: list[str] = ["0"] * len(inner)
        for ours, theirs in groups:
            extents = tuple(shape[one] for one in ours)
            targets = tuple(inner[one] for one in theirs)
            position = body.position([index[one] for one in ours], extents)
            found = body.split(body.let("Index", position), targets)
            for one, at in zip(theirs, found, strict=True):
                result[one] = at
        return tuple(result)

    return Viewed(value, shape, place)


def _reshaped_operands(program: LoweredProgram, value: Pointwise, shape: Shape) -> Value | None:
    """Return the function of reshaped operands, if each is whole or one element, or it rounds."""
    if value.rounds:
        whole = tuple(reshaped(program, one, shape) for one in value.operands)
        return replace(value, operands=whole, shape=shape)
    operands: list[Value] = []
    for one in value.operands:
        if all(extent.literal == 1 for extent in one.shape):
            operands.append(reshaped(program, one, ()))
        elif isinstance(one, Stored | Pending | Pointwise) and program.sizes.same_shape(
            one.shape, value.shape
        ):
            operands.append(reshaped(program, one, shape))
        else:
            return None
    return replace(value, operands=tuple(operands), shape=shape)


def _groups(
    sizes: SizeTable, ours: Shape, theirs: Shape
) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the smallest runs of dimensions of two shapes that hold equal numbers of elements."""
    start, other = 0, 0
    for end in range(1, len(ours) + 1):
        count = product(ours[start:end])
        for other_end in range(other, len(theirs) + 1):
            if sizes.equal(count, product(theirs[other:other_end])):
                if end == len(ours):
                    other_end = len(theirs)
                yield tuple(range(start, end)), tuple(range(other, other_end))
                start, other = end, other_end
                break
    if start < len(ours) or other < len(theirs):
        yield tuple(range(start, len(ours))), tuple(range(other, len(theirs)))


def _view(call: Call) -> Value:
    return reshaped(call.program, call.value(0), call.shape)


def _same(call: Call) -> Value:
    return call.value(0)


def _copy(call: Call) -> Value:
    return expanded(converted(call.value(1), call.dtype, call.sizes), call.shape, call.sizes)


def permuted(value: Value, order: tuple[int, ...]) -> Value:
    """Return `value` with its dimensions in another order."""
    shape = tuple(value.shape[one] for one in order)

    def place(body: Body, index: Index) -> Index:
        del body
        return tuple(index[order.index(one)] for one in range(len(order)))

    return value if order == tuple(range(len(order))) else Viewed(value, shape, place)


def _permute(call: Call) -> Value:
    value = call.value(0)
    given = call.argument(1)
    rank = len(value.shape)
    entries = given if isinstance(given, tuple) else ()
    order = tuple(int(one) % rank for one in entries if isinstance(one, int))
    if sorted(order) != list(range(rank)):
        call.refuse(f"needs one order for all workloads, got {given!r}")
    return permuted(value, order)


def _transpose(call: Call) -> Value:
    value = call.value(0)
    rank = len(value.shape)
    order = list(range(rank))
    if rank > 1:
        one, other = (call.dim(1, rank), call.dim(2, rank)) if len(call.node.args) > 1 else (0, 1)
        order[one], order[other] = order[other], order[one]
    return permuted(value, tuple(order))


def expanded(value: Value, shape: Shape, sizes: SizeTable) -> Value:
    """Return `value` broadcast to `shape`."""
    if isinstance(value, Constant):
        return Constant(value.value, value.dtype, shape)
    if sizes.same_shape(value.shape, shape):
        return value
    return Pointwise(lambda codes: codes[0], (value,), value.dtype, shape, sizes, value.cost)


def _expand(call: Call) -> Value:
    return expanded(call.value(0), call.shape, call.sizes)


def _select(call: Call) -> Value:
    value = call.value(0)
    dim = call.dim(1, len(value.shape))
    chosen = call.size(2)
    if chosen.literal is not None and chosen.literal < 0:
        chosen = value.shape[dim] + chosen
    shape = (*value.shape[:dim], *value.shape[dim + 1 :])

    def place(body: Body, index: Index) -> Index:
        return (*index[:dim], body.let("Index", chosen.code), *index[dim:])

    return Viewed(value, shape, place)


def _slice(call: Call) -> Value:
    value = call.value(0)
    dim = call.dim(1, len(value.shape))
    start = start_of(call, value.shape[dim], 2)
    return strided(value, dim, (start, call.shape[dim], call.size(4, "step", 1)))


def start_of(call: Call, extent: Size, place: int) -> Size:
    """Return the first index of a slice: from the end if it is negative, at most the extent."""
    given = call.argument(place, "start")
    start = literal(0) if given is None else call.size(place, "start")
    if start.literal is not None and start.literal < 0:
        moved = extent + start
        return moved if min(call.sizes.values(moved)) >= 0 else literal(0)
    return start


def strided(value: Value, dim: int, run: tuple[Size, Size, Size]) -> Value:
    """Return elements from `run`'s start on, as many as its count, by its step, along `dim`."""
    start, count, step = run
    shape = (*value.shape[:dim], count, *value.shape[dim + 1 :])

    def place(body: Body, index: Index) -> Index:
        text = index[dim] if step.literal == 1 else f"{index[dim]} * {step.factor}"
        if start.literal != 0:
            text += f" + {start.factor}"
        return (*index[:dim], body.let("Index", text), *index[dim + 1 :])

    if start.literal == 0 and step.literal == 1 and value.shape[dim] == count:
        return value
    return Viewed(value, shape, place)


def _flip(call: Call) -> Value:
    value = call.value(0)
    dims = call.dims(1, len(value.shape))

    def place(body: Body, index: Index) -> Index:
        return tuple(
            body.let("Index", f"{value.shape[one].factor} - 1 - {at}") if one in dims else at
            for one, at in enumerate(index)
        )

    return Viewed(value, value.shape, place)


def _unfold(call: Call) -> Value:
    value = call.value(0)
    dim = call.dim(1, len(value.shape), "dimension")
    step = call.size(3, "step")

    def place(body: Body, index: Index) -> Index:
        text = f"{index[dim]} * {step.factor} + {index[-1]}"
        return (*index[:dim], body.let("Index", text), *index[dim + 1 : -1])

    return Viewed(value, call.shape, place)


def _pieces(call: Call) -> tuple[Value, ...]:
    value = call.value(0)
    dim = call.dim(2, len(value.shape))
    start, pieces = literal(0), list[Value]()
    for one in call.node.results:
        if one is not None:
            count = shape_of(call.result_at(len(pieces)))[dim]
            pieces.append(strided(value, dim, (start, count, ONE)))
            start = start + count
    return tuple(pieces)


def _unbind(call: Call) -> tuple[Value, ...]:
    value = call.value(0)
    dim = call.dim(1, len(value.shape))
    shape = (*value.shape[:dim], *value.shape[dim + 1 :])

    def piece(number: int) -> Value:
        return Viewed(value, shape, lambda _, index: (*index[:dim], str(number), *index[dim:]))

    return tuple(piece(number) for number in range(len(call.node.results)))


def _as_strided(call: Call) -> Value:
    base = call.program.realise(call.value(0))
    flat = Stored(base.buffer, (product(base.shape),))
    steps = call.size_list(2, len(call.shape))
    offset = literal(0) if call.argument(3, "storage_offset") is None else call.size(3)

    def place(body: Body, index: Index) -> Index:
        terms = [f"{at} * {step.factor}" for at, step in zip(index, steps, strict=True)]
        if offset.literal != 0:
            terms.append(offset.factor)
        return (body.let("Index", " + ".join(terms) or "0"),)

    return Viewed(flat, call.shape, place)


def _repeat(call: Call) -> Value:
    value = call.value(0)
    offset = len(call.shape) - len(value.shape)

    def place(body: Body, index: Index) -> Index:
        pairs = zip(index[offset:], value.shape, strict=True)
        return tuple(
            "0" if extent.literal == 1 else body.let("Index", f"{at} % {extent.factor}")
            for at, extent in pairs
        )

    return Viewed(value, call.shape, place)


def lowerings() -> dict[str, Lowering]:
    """Return the lowering of each operator by its name, overload included."""
    same = "alias clone detach lift_fresh_copy contiguous"
    views = "view reshape _unsafe_view view_copy squeeze unsqueeze flatten unflatten"
    table: dict[str, Lowering] = {f"aten.{name}.default": _same for name in same.split()}
    table |= {f"aten.{name}.default": _view for name in views.split()}
    table |= {f"aten.squeeze.{overload}": _view for overload in ("dim", "dims")}
    return {
        **table,
        "aten.copy.default": _copy,
        "aten.permute.default": _permute,
        "aten.transpose.int": _transpose,
        "aten.t.default": _transpose,
        "aten.expand.default": _expand,
        "aten.select.int": _select,
        "aten.slice.Tensor": _slice,
        "aten.flip.default": _flip,
        "aten.unfold.default": _unfold,
        "aten.split_with_sizes.default": _pieces,
        "aten.split.Tensor": _pieces,
        "aten.unbind.int": _unbind,
        "aten.as_strided.default": _as_strided,
        "aten.repeat.default": _repeat,
    }
