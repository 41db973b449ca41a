"""Enlarged images: the nearest element, or a mean weighted by distance."""

from collections.abc import Callable

from .body import Body
from .call import Call
from .cuda_types import number
from .sizes import Size
from .values import Computed, Index, Value, Viewed

Lowering = Callable[[Call], Value]


def _scale(call: Call, place: int, extents: tuple[Size, Size], scales_at: int) -> str:
    """Return the code of how far a step of the result goes in the argument."""
    given = call.argument(scales_at, "scale_factors")
    if isinstance(given, tuple) and isinstance(given[place], float):
        return number(1.0 / float(given[place]), "float")  # type: ignore[arg-type]  # a float
    inner, outer = extents
    return f"(float({inner.code}) / float({outer.code}))"


def _nearest(rank: int) -> Lowering:
    def lower(call: Call) -> Value:
        value = call.program.once(call.value(0))
        lead = len(value.shape) - rank

        def place(body: Body, index: Index) -> Index:
            found = list(index)
            for number_ in range(rank):
                dim = lead + number_
                scale = _scale(call, number_, (value.shape[dim], call.shape[dim]), 2)
                at = f"static_cast<Index>(std::floor(float({index[dim]}) * {scale}))"
                last = f"Index({value.shape[dim].code} - 1)"
                found[dim] = body.let("Index", f"op::at_most({at}, {last})")
            return tuple(found)

        return Viewed(value, call.shape, place)

    return lower


def _linear(rank: int) -> Lowering:
    def lower(call: Call) -> Value:
        value = call.program.once(call.value(0))
        lead = len(value.shape) - rank
        has_corners = call.flag(2, "align_corners")

        def position(body: Body, number_: int, at: str) -> str:
            inner, outer = value.shape[lead + number_], call.shape[lead + number_]
            if has_corners:
                steps = f"float({outer.code} > 1 ? {outer.code} - 1 : 1)"
                return body.let("float", f"float({at}) * float({inner.code} - 1) / {steps}")
            scale = _scale(call, number_, (inner, outer), 3)
            text = f"op::at_least((float({at}) + 0.5f) * {scale} - 0.5f, 0.0f)"
            return body.let("float", text)

        def write(body: Body, index: Index) -> str:
            sides: list[tuple[tuple[str, str], tuple[str, str]]] = []
            for number_ in range(rank):
                exact = position(body, number_, index[lead + number_])
                low = body.let("Index", f"static_cast<Index>({exact})")
                last = value.shape[lead + number_]
                high = body.let("Index", f"{low} + ({low} < {last.code} - 1)")
                share = body.let("float", f"{exact} - float({low})")
                rest = body.let("float", f"1.0f - {share}")
                sides.append(((low, rest), (high, share)))
            terms: list[str] = []
            for corner in range(1 << rank):
                chosen = [side[(corner >> place) & 1] for place, side in enumerate(sides)]
                element = value.at(body, (*index[:lead], *(at for at, _ in chosen)))
                terms.append(" * ".join([element, *(weight for _, weight in chosen)]))
            return " + ".join(terms)

        return Computed(write, call.shape, call.dtype, (value,), 10 + (1 << rank) * value.cost)

    return lower


def lowerings() -> dict[str, Lowering]:
    """Return the lowering of each operator by its name, overload included."""
    return {
        **{f"aten.upsample_nearest{rank}d.vec": _nearest(rank) for rank in (1, 2, 3)},
        "aten.upsample_linear1d.vec": _linear(1),
        "aten.upsample_bilinear2d.vec": _linear(2),
        "aten.upsample_trilinear3d.vec": _linear(3),
    }
