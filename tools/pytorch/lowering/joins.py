"""Operators that put tensors beside or into one another: cat, padding, scattered slices."""

from collections.abc import Callable

from .body import Body
from .call import Call
from .cuda_types import cast, computed
from .joined import Joined
from .sizes import Size, literal
from .values import Computed, Guarded, Index, Value
from .views import start_of

Lowering = Callable[[Call], Value]
_MOST_PARTS = 16


def _cat(call: Call) -> Value:
    values = call.value_list(0)
    dim = call.dim(1, len(call.shape))
    parts = tuple(
        call.program.once(one)
        for one in values
        if len(one.shape) == len(call.shape) and one.shape[dim].literal != 0
    )
    return _joined(call, parts, dim)


def _joined(call: Call, parts: tuple[Value, ...], dim: int) -> Value:
    """Return parts side by side; many are joined by several kernels."""
    while len(parts) > _MOST_PARTS:
        groups = [parts[start : start + _MOST_PARTS] for start in range(0, len(parts), _MOST_PARTS)]
        parts = tuple(
            group[0] if len(group) == 1 else call.program.realise(_beside(call, group, dim))
            for group in groups
        )
    return parts[0] if len(parts) == 1 else _beside(call, parts, dim)


def _beside(call: Call, parts: tuple[Value, ...], dim: int) -> Value:
    extent = literal(0)
    for part in parts:
        extent = extent + part.shape[dim]
    if len(parts) == len(call.value_list(0)):
        extent = call.shape[dim]
    shape = (*call.shape[:dim], extent, *call.shape[dim + 1 :])
    return Joined(parts, shape, call.dtype, dim)


def _pad(call: Call) -> Value:
    value = call.value(0)
    given = call.argument(1)
    pads = call.size_list(1, len(given) if isinstance(given, tuple) else 1)
    rank = len(value.shape)
    before = [literal(0)] * rank
    after = [literal(0)] * rank
    for number in range(len(pads) // 2):
        before[rank - 1 - number], after[rank - 1 - number] = pads[2 * number : 2 * number + 2]

    def place(body: Body, index: Index) -> tuple[str, Index]:
        at: list[str] = []
        tests: list[str] = []
        for one, low, high, extent in zip(index, before, after, value.shape, strict=True):
            moved = one if low.literal == 0 else body.let("Index", f"{one} - {low.factor}")
            at.append(moved)
            tests += [] if low.literal == 0 else [f"{moved} >= 0"]
            tests += [] if high.literal == 0 else [f"{moved} < {extent.code}"]
        return " && ".join(tests), tuple(at)

    return Guarded(value, call.shape, place, call.number(2, "value", 0.0))


def _scattered(
    call: Call, dim: int, place: Callable[[Body, str], tuple[str, tuple[str, ...]]]
) -> Value:
    """Return the first argument with the second in the places for which the test holds."""
    base, inside = call.program.once(call.value(0)), call.program.once(call.value(1))
    ctype = computed(call.dtype)

    def write(body: Body, index: Index) -> str:
        test, at = place(body, index[dim])
        name = body.fresh("v")
        body.line(f"{ctype} {name};")
        with body.block(f"if ({test})"):
            inner = (*index[:dim], *at, *index[dim + 1 :])
            value = cast(inside.at(body, inner), inside.dtype, call.dtype)
            body.line(f"{name} = {value};")
        with body.block("else"):
            body.line(f"{name} = {base.at(body, index)};")
        return name

    return Computed(write, call.shape, call.dtype, (base, inside), base.cost + inside.cost + 1)


def _slice_scatter(call: Call) -> Value:
    dim = call.dim(2, len(call.shape))
    start = start_of(call, call.shape[dim], 3)
    step: Size = call.size(5, "step", 1)
    count = call.value(1).shape[dim]

    def place(body: Body, at: str) -> tuple[str, tuple[str, ...]]:
        moved = body.let("Index", f"{at} - {start.factor}")
        tests = [f"{moved} >= 0", f"{moved} < {count.factor} * {step.factor}"]
        if step.literal == 1:
            return " && ".join(tests), (moved,)
        tests.append(f"{moved} % {step.factor} == 0")
        return " && ".join(tests), (body.let("Index", f"{moved} / {step.factor}"),)

    return _scattered(call, dim, place)


def _select_scatter(call: Call) -> Value:
    dim = call.dim(2, len(call.shape))
    chosen = call.size(3, "index")
    if chosen.literal is not None and chosen.literal < 0:
        chosen = call.shape[dim] + chosen
    return _scattered(call, dim, lambda _, at: (f"{at} == {chosen.factor}", ()))


def lowerings() -> dict[str, Lowering]:
    """Return the lowering of each operator by its name, overload included."""
    return {
        "aten.cat.default": _cat,
        "aten.constant_pad_nd.default": _pad,
        "aten.slice_scatter.default": _slice_scatter,
        "aten.select_scatter.default": _select_scatter,
    }
