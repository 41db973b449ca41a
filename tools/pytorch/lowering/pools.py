"""Pools: reductions of windows, a thread for each place."""

from collections.abc import Callable, Sequence

from .body import Body
from .call import Call
from .cuda_types import FLOATS, computed, number
from .folds import FIRST_LARGEST, LARGEST, SUM
from .reduction import Reduction
from .reduction_kernels import reduced
from .sizes import Shape, literal, product
from .values import Computed, Guarded, Index, Pointwise, Value
from .windows import Window, read_at, windows

Lowering = Callable[[Call], Value | tuple[Value, ...]]


def _along(call: Call, rank: int, dilation_at: int | None) -> tuple[Window, ...]:
    extents = call.size_list(1, rank)
    steps = call.size_list(2, rank) if call.argument(2) not in (None, ()) else extents
    paddings = call.size_list(3, rank)
    dilations = call.size_list(dilation_at, rank, 1) if dilation_at else (literal(1),) * rank
    return tuple(map(Window, extents, steps, paddings, dilations))


def _max_pool(rank: int) -> Lowering:
    def lower(call: Call) -> tuple[Value, ...]:
        value = call.program.once(call.value(0))
        along = _along(call, rank, 4)
        outside = float("-inf") if call.dtype in FLOATS else -(2**31)
        lead = len(value.shape) - rank
        patches = windows(value, along, call.shape[lead:], outside)
        dims = tuple(range(lead + rank, lead + 2 * rank))
        name = call.node.name
        if not call.is_read(1):
            pooled = Reduction(patches, dims, LARGEST, (call.dtype,), keeps=False)
            return reduced(call.program, pooled, name)
        places = _plane_index(value, along, lead)
        both = Reduction(
            patches, dims, FIRST_LARGEST, (call.dtype, "int64"), keeps=False, position=places
        )
        return reduced(call.program, both, name)

    return lower


def _plane_index(value: Value, along: Sequence[Window], lead: int) -> Callable[[Body, Index], str]:
    """Return what computes the row-major place in its image of an element of a window."""
    rank = len(along)

    def position(body: Body, index: Index) -> str:
        at = [
            read_at(body, one, index[lead + number], index[lead + rank + number])
            for number, one in enumerate(along)
        ]
        return body.position(at, value.shape[lead:])

    return position


def _average_pool(rank: int) -> Lowering:
    def lower(call: Call) -> Value:
        value = call.program.once(call.value(0))
        along = _along(call, rank, None)
        lead = len(value.shape) - rank
        patches = windows(value, along, call.shape[lead:], 0.0)
        dims = tuple(range(lead + rank, lead + 2 * rank))
        reduction = Reduction(patches, dims, SUM, (call.dtype,), keeps=False)
        total = reduced(call.program, reduction, call.node.name)[0]
        return divided(call, total, _count(call, value.shape[lead:], along))

    return lower


def divided(call: Call, total: Value, count: Value | str) -> Value:
    """Return sums divided by their counts."""
    operands = (total,) if isinstance(count, str) else (total, count)
    ctype = computed(call.dtype)

    def function(codes: Sequence[str]) -> str:
        return f"{codes[0]} / {ctype}({count if isinstance(count, str) else codes[1]})"

    return Pointwise(function, operands, call.dtype, call.shape, call.sizes, 2 + total.cost)


def _count(call: Call, extents: Shape, along: Sequence[Window]) -> Value | str:
    """Return by how much a sum is divided: one number, or a value of its place."""
    override = call.argument(6, "divisor_override")
    if isinstance(override, int):
        return number(override, "int")
    whole = product(one.extent for one in along)
    has_padding = any(one.padding.literal != 0 for one in along)
    with_padding = call.flag(5, "count_include_pad", True)
    if not call.flag(4, "ceil_mode") and (with_padding or not has_padding):
        return whole.code
    lead = len(call.shape) - len(along)

    def write(body: Body, index: Index) -> str:
        factors: list[str] = []
        pairs = zip(along, extents, index[lead:], strict=True)
        for window, extent, at in pairs:
            first = read_at(body, window, at, "0")
            bound = f"{extent.code} + {window.padding.factor}" if with_padding else extent.code
            last = body.let(
                "Index", f"op::at_most<Index>({first} + {window.extent.factor}, {bound})"
            )
            low = first if with_padding else f"op::at_least<Index>({first}, 0)"
            factors.append(body.let("Index", f"{last} - {low}"))
        return " * ".join(factors)

    return Computed(write, call.shape, "int64")


def _adaptive(rank: int, is_largest: bool) -> Lowering:
    def lower(call: Call) -> Value:
        value = call.program.once(call.value(0))
        lead = len(value.shape) - rank
        extents, counts = value.shape[lead:], call.shape[lead:]
        most = tuple(
            (extent + count - literal(1)) // count + literal(1)
            for extent, count in zip(extents, counts, strict=True)
        )

        def bounds(body: Body, place: int, at: str) -> tuple[str, str]:
            extent, count = extents[place].factor, counts[place].factor
            first = body.let("Index", f"{at} * {extent} / {count}")
            end = body.let("Index", f"(({at} + 1) * {extent} + {count} - 1) / {count}")
            return first, end

        def place(body: Body, index: Index) -> tuple[str, Index]:
            at: list[str] = []
            tests: list[str] = []
            for number_ in range(rank):
                first, end = bounds(body, number_, index[lead + number_])
                at.append(body.let("Index", f"{first} + {index[lead + rank + number_]}"))
                tests.append(f"{at[-1]} < {end}")
            return " && ".join(tests), (*index[:lead], *at)

        def write(body: Body, index: Index) -> str:
            pairs = [bounds(body, one, index[lead + one]) for one in range(rank)]
            return " * ".join(f"({end} - {first})" for first, end in pairs)

        outside = float("-inf") if is_largest else 0.0
        patches = Guarded(value, (*value.shape[:lead], *counts, *most), place, outside)
        dims = tuple(range(lead + rank, lead + 2 * rank))
        fold = LARGEST if is_largest else SUM
        reduction = Reduction(patches, dims, fold, (call.dtype,), keeps=False)
        total = reduced(call.program, reduction, call.node.name)[0]
        if is_largest:
            return total
        return divided(call, total, Computed(write, call.shape, "int64"))

    return lower


def lowerings() -> dict[str, Lowering]:
    """Return the lowering of each operator by its name, overload included."""
    table: dict[str, Lowering] = {}
    for rank in (1, 2, 3):
        table[f"aten.max_pool{rank}d_with_indices.default"] = _max_pool(rank)
        table[f"aten.avg_pool{rank}d.default"] = _average_pool(rank)
        table[f"aten._adaptive_avg_pool{rank}d.default"] = _adaptive(rank, False)
        table[f"aten.adaptive_max_pool{rank}d.default"] = _adaptive(rank, True)
    return table
