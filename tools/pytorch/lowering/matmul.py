"""Matrix products: mm, bmm, addmm, baddbmm and their like."""

from collections.abc import Callable, Sequence

from .body import Body
from .call import Call
from .contraction import Contraction, Operand
from .contraction_kernels import contracted
from .cuda_types import cast, computed, number
from .folds import SUM
from .reduction import Reduction
from .reduction_kernels import reduced
from .sizes import ONE
from .values import Index, Pointwise, Value, broadcast

Lowering = Callable[[Call], Value]


def _order_along_k(value: Value, dim: int) -> bool:
    """Return whether dimension `dim` of `value` is the one whose neighbours lie side by side."""
    probe = Body()
    index = tuple("k" if place == dim else "0" for place in range(len(value.shape)))
    value.at(probe, index)
    texts = [line for line in probe.lines if "_data[" in line]
    return bool(texts) and all("k]" in text for text in texts)


def multiplied(
    call: Call, operands: Sequence[Value], start: Callable[[Body, Index, str], str] | None = None
) -> Value:
    """Return the product of two matrices, or of two stacks of matrices.

    Args:
        call: Gives the result's shape, dtype and name.
        operands: Both of rank 2, or both of rank 3.
        start: As of a contraction.
    """
    left, right = (call.program.at_hand(one) for one in operands)
    is_batched = len(left.shape) == 3
    rows, terms = left.shape[-2:]

    def matrix(_: Body, index: Index) -> Index:
        return index if is_batched else index[1:]

    contraction = Contraction(
        batch=left.shape[0] if is_batched else ONE,
        rows=rows,
        columns=right.shape[-1],
        terms=terms,
        left=Operand(left, matrix, _order_along_k(left, len(left.shape) - 1)),
        right=Operand(right, matrix, _order_along_k(right, len(right.shape) - 2)),
        shape=call.shape,
        dtype=call.dtype,
        target=matrix,
        is_plain_order=True,
        start=start,
    )
    return contracted(call.program, contraction, call.node.name)


def _product(call: Call) -> Value:
    return multiplied(call, [call.value(0), call.value(1)])


def _added(call: Call) -> Value:
    bias = call.program.once(call.value(0))
    scales = [call.number(place, name, 1.0) for place, name in ((3, "beta"), (4, "alpha"))]
    beta, alpha = (number(scale, computed(call.dtype)) for scale in scales)
    place = Pointwise(
        lambda codes: codes[0], (bias,), call.dtype, call.shape, call.sizes, bias.cost
    )

    def start(body: Body, index: Index, total: str) -> str:
        scaled = total if scales[1] == 1 else f"{alpha} * {total}"
        if scales[0] == 0:
            return scaled
        name = bias.at(body, broadcast(body, bias.shape, place, index))
        added = cast(name, bias.dtype, call.dtype)
        return f"{scaled} + {added if scales[0] == 1 else f'{beta} * {added}'}"

    return multiplied(call, [call.value(1), call.value(2)], start)


def _vector(call: Call) -> Value:
    """Lower mv and dot: a sum of products over the last dimension."""
    left, right = call.value(0), call.value(1)
    product = Pointwise(
        lambda codes: f"{codes[0]} * {codes[1]}",
        (left, right),
        call.dtype,
        left.shape,
        call.sizes,
        1 + left.cost + right.cost,
    )
    reduction = Reduction(product, (len(left.shape) - 1,), SUM, (call.dtype,), keeps=False)
    return reduced(call.program, reduction, call.node.name)[0]


def lowerings() -> dict[str, Lowering]:
    """Return the lowering of each operator by its name, overload included."""
    return {
        "aten.mm.default": _product,
        "aten.bmm.default": _product,
        "aten.addmm.default": _added,
        "aten.baddbmm.default": _added,
        "aten.mv.default": _vector,
        "aten.dot.default": _vector,
    }
