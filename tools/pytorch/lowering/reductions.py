"""Operators that reduce dimensions: sums, means, extremes, variances, norms, any and all."""

import math
from collections.abc import Callable

from .call import Call
from .cuda_types import FLOATS, computed, number
from .folds import (
    ALL,
    ANY,
    FIRST_LARGEST,
    FIRST_SMALLEST,
    LARGEST,
    MEAN,
    PRODUCT,
    SMALLEST,
    SUM,
    Fold,
    moments,
)
from .reduction import Reduction
from .reduction_kernels import reduced
from .sizes import product
from .values import Value, converted
from .views import reshaped

Lowering = Callable[[Call], Value | tuple[Value, ...]]


def _reduced(call: Call, fold: Fold, prepare: str = "{0}", keep_at: int = 2) -> Value:
    value = call.value(0)
    if call.argument(keep_at + 1, "dtype") is not None:
        value = converted(value, call.dtype, call.sizes)
    dims = call.dims(1, len(value.shape), "dim")
    keeps = call.flag(keep_at, "keepdim")
    reduction = Reduction(value, dims, fold, (call.dtype,), keeps, prepare)
    return reduced(call.program, reduction, call.node.name)[0]


def _lowering(fold: Fold) -> Lowering:
    return lambda call: _reduced(call, fold)


def _whole(fold: Fold) -> Lowering:
    def lower(call: Call) -> Value:
        value = call.value(0)
        if fold in (SUM, MEAN, PRODUCT) and call.dtype in FLOATS:
            value = converted(value, call.dtype, call.sizes)
        dims = tuple(range(len(value.shape)))
        reduction = Reduction(value, dims, fold, (call.dtype,), keeps=False)
        return reduced(call.program, reduction, call.node.name)[0]

    return lower


def _with_index(fold: Fold) -> Lowering:
    def lower(call: Call) -> tuple[Value, ...]:
        value = call.value(0)
        dim = call.dim(1, len(value.shape))
        dtypes = (call.dtype, "int64")
        reduction = Reduction(value, (dim,), fold, dtypes, call.flag(2, "keepdim"))
        return reduced(call.program, reduction, call.node.name)

    return lower


def _index_only(fold: Fold) -> Lowering:
    only = Fold(fold.state, fold.results[1:], 0, needs_index=True)

    def lower(call: Call) -> Value:
        value = call.value(0)
        given = call.argument(1, "dim")
        if given is None:
            value = reshaped(call.program, value, (product(value.shape),))
        dims = (len(value.shape) - 1,) if given is None else call.dims(1, len(value.shape), "dim")
        keeps = given is not None and call.flag(2, "keepdim")
        reduction = Reduction(value, dims, only, (call.dtype,), keeps)
        found = reduced(call.program, reduction, call.node.name)[0]
        return reshaped(call.program, found, call.shape)

    return lower


def _variance(call: Call) -> Value:
    return _variances(call)[0]


def _deviation(call: Call) -> Value:
    return _variances(call, "std::sqrt({0})")[0]


def _variance_mean(call: Call) -> tuple[Value, ...]:
    return _variances(call)


def _variances(call: Call, finish: str = "{0}") -> tuple[Value, ...]:
    value = call.value(0)
    correction = call.number(3, "correction", 1.0) if _has_correction(call) else 1.0
    dims = call.dims(1, len(value.shape), "dim")
    free = number(correction, computed(call.dtype))
    divided = f"state.squares / op::at_least({{T}}({{count}}) - {free}, {{T}}(0))"
    names = len([one for one in call.node.results if one is not None])
    fold = moments(*(finish.replace("{0}", divided), "state.mean")[:names])
    reduction = Reduction(value, dims, fold, (call.dtype,) * names, call.flag(3, "keepdim"))
    return reduced(call.program, reduction, call.node.name)


def _has_correction(call: Call) -> bool:
    return call.node.kwargs.get("correction") is not None


def _vector_norm(call: Call) -> Value:
    order = call.number(1, "ord", 2.0)
    value = converted(call.value(0), call.dtype, call.sizes)
    dims = call.dims(2, len(value.shape), "dim")
    fold, prepare = _norm(order)
    reduction = Reduction(value, dims, fold, (call.dtype,), call.flag(3, "keepdim"), prepare)
    return reduced(call.program, reduction, call.node.name)[0]


def _norm(order: float) -> tuple[Fold, str]:
    if order == 2:
        return Fold("Sum", ("std::sqrt(state.total)",)), "{0} * {0}"
    if order == 1:
        return SUM, "std::abs({0})"
    if order == 0:
        return SUM, "{T}({0} != 0)"
    if math.isinf(order):
        return (LARGEST if order > 0 else SMALLEST), "std::abs({0})"
    root = f"std::pow(state.total, {{T}}({1 / order!r}))"
    return Fold("Sum", (root,)), f"std::pow(std::abs({{0}}), {{T}}({order!r}))"


def lowerings() -> dict[str, Lowering]:
    """Return the lowering of each operator by its name, overload included."""
    folds = {"sum": SUM, "mean": MEAN, "prod": PRODUCT, "any": ANY, "all": ALL}
    table: dict[str, Lowering] = {
        f"aten.{name}.default": _whole(fold) for name, fold in folds.items()
    }
    table |= {
        f"aten.{name}.{overload}": _lowering(folds[name])
        for name, overload in (
            *(("sum", "dim_IntList"), ("mean", "dim"), ("prod", "dim_int")),
            *((name, overload) for name in ("any", "all") for overload in ("dim", "dims")),
        )
    }
    table |= {"aten.amax.default": _lowering(LARGEST), "aten.amin.default": _lowering(SMALLEST)}
    table |= {"aten.max.default": _whole(LARGEST), "aten.min.default": _whole(SMALLEST)}
    return {
        **table,
        "aten.max.dim": _with_index(FIRST_LARGEST),
        "aten.min.dim": _with_index(FIRST_SMALLEST),
        "aten.argmax.default": _index_only(FIRST_LARGEST),
        "aten.argmin.default": _index_only(FIRST_SMALLEST),
        "aten.var.correction": _variance,
        "aten.std.correction": _deviation,
        "aten.var_mean.correction": _variance_mean,
        "aten.linalg_vector_norm.default": _vector_norm,
    }
