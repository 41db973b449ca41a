"""Convolutions as contractions: of 1 to 3 dimensions, grouped, dilated, transposed.

A row is an output channel, a column a place of an image, and a term an input channel with a place
in the window: neighbouring columns are neighbours in memory, in the image and in the result.
"""

from collections.abc import Callable

from .body import Body
from .call import Call
from .contraction import Contraction, Operand, contracted
from .cuda_types import cast
from .sizes import Size, product
from .values import Guarded, Index, Value
from .windows import Window, transposed, windows

Lowering = Callable[[Call], Value]


def _convolution(call: Call) -> Value:
    value, weight, bias = call.value(0), call.value(1), call.optional(2)
    rank = len(weight.shape) - 2
    if len(value.shape) != rank + 2:
        call.refuse("needs a batch dimension")
    value, weight = call.program.at_hand(value), call.program.at_hand(weight)
    steps, paddings, dilations = (call.size_list(place, rank) for place in (3, 4, 5))
    is_transposed = call.flag(6)
    groups = call.size(8, "groups", 1)
    along = tuple(map(Window, weight.shape[2:], steps, paddings, dilations))
    counts = call.shape[2:]
    patches = (transposed if is_transposed else windows)(value, along, counts, 0.0)
    return _contracted(call, (patches, weight, bias), groups, is_transposed)


def _contracted(
    call: Call, operands: tuple[Value, Value, Value | None], groups: Size, is_transposed: bool
) -> Value:
    patches, weight, bias = operands
    images, channels = patches.shape[:2]
    rank = len(weight.shape) - 2
    places, inside = call.shape[2:], weight.shape[2:]
    taken, made = channels // groups, call.shape[1] // groups

    def kernel(body: Body, index: Index) -> Index:
        group, row, term = index
        channel, *within = body.split(term, (taken, *inside))
        if is_transposed:  # (in, out / groups, ...)
            return (_joined(body, group, taken, channel), row, *within)
        return (_joined(body, group, made, row), channel, *within)

    def patch(body: Body, index: Index) -> Index:
        group, term, column = index
        channel, *within = body.split(term, (taken, *inside))
        image, *place = body.split(column, (images, *places))
        return (image, _joined(body, group, taken, channel), *place, *within)

    def target(body: Body, index: Index) -> Index:
        group, row, column = index
        image, *place = body.split(column, (images, *places))
        return (image, _joined(body, group, made, row), *place)

    def start(body: Body, index: Index, total: str) -> str:
        assert bias is not None
        return f"{total} + {cast(bias.at(body, (index[1],)), bias.dtype, call.dtype)}"

    del rank
    assert isinstance(patches, Guarded)
    contraction = Contraction(
        batch=groups,
        rows=made,
        columns=product((images, *places)),
        terms=product((taken, *inside)),
        left=Operand(weight, kernel, not is_transposed),
        right=Operand(patches, patch, False),
        shape=call.shape,
        dtype=call.dtype,
        target=target,
        start=None if bias is None else start,
    )
    return contracted(call.program, contraction, call.node.name)


def _joined(body: Body, group: str, extent: Size, within: str) -> str:
    """Return a channel by its group and its place in the group."""
    if group == "0":
        return within
    return body.let("Index", f"{group} * {extent.factor} + {within}")


def lowerings() -> dict[str, Lowering]:
    """Return the lowering of each operator by its name, overload included."""
    return {"aten.convolution.default": _convolution}
