"""Norms and softmax: statistics by a reduction, the rest inlined into whoever reads the result."""

from collections.abc import Callable, Sequence

from .body import Body
from .call import Call
from .cuda_types import cast, computed, number
from .folds import EXPONENTIALS, moments
from .reduction import Reduction
from .reduction_kernels import reduced
from .sizes import ONE, Shape
from .values import Index, Pointwise, Value, Viewed, converted
from .views import reshaped

Lowering = Callable[[Call], Value | tuple[Value, ...]]


def _statistics_dtype(dtype: str) -> str:
    return "float64" if dtype == "float64" else "float32"


def _statistics(
    call: Call, value: Value, dims: tuple[int, ...], epsilon: float
) -> tuple[Value, Value]:
    """Return the mean and the reciprocal standard deviation, with dimensions of one element."""
    dtype = _statistics_dtype(value.dtype)
    fold = moments(
        "state.mean", f"{{T}}(1) / std::sqrt(state.squares / {{T}}({{count}}) + {{T}}({epsilon!r}))"
    )
    reduction = Reduction(value, dims, fold, (dtype, dtype), keeps=True)
    mean, scale = reduced(call.program, reduction, call.node.name)
    return mean, scale


def _normed(
    call: Call, value: Value, statistics: Sequence[Value], affine: Sequence[Value]
) -> Value:
    """Return (value - mean) * scale * weight + bias; weight, or weight and bias, may be missing."""
    operands = (value, *statistics, *affine)
    types = [one.dtype for one in operands]
    wide = _statistics_dtype(call.dtype)
    texts = ("({0} - {1}) * {2}", "({0} - {1}) * {2} * {3}", "({0} - {1}) * {2} * {3} + {4}")
    text = texts[len(affine)]

    def function(codes: Sequence[str]) -> str:
        ready = [cast(code, one, wide) for code, one in zip(codes, types, strict=True)]
        return text.format(*ready)

    cost = 4 + sum(one.cost for one in operands)
    return Pointwise(function, operands, call.dtype, call.shape, call.sizes, cost)


def _along(value: Value, dim: int, rank: int) -> Value:
    """Return a vector with dimensions of one element around it, so that it lies along `dim`."""
    shape = tuple(value.shape[0] if one == dim else ONE for one in range(rank))

    def place(_: Body, index: Index) -> Index:
        return (index[dim],)

    return Viewed(value, shape, place)


def _affine(call: Call, places: tuple[int, int], put: Callable[[Value], Value]) -> list[Value]:
    weight, bias = (call.optional(place) for place in places)
    if weight is None and bias is not None:
        call.refuse("has a bias but no weight")
    return [put(one) for one in (weight, bias) if one is not None]


def _layer_norm(call: Call) -> tuple[Value, ...]:
    value = call.program.once(call.value(0))
    given = call.argument(1)
    count = len(given) if isinstance(given, tuple) else 1
    rank = len(value.shape)
    dims = tuple(range(rank - count, rank))
    mean, scale = _statistics(call, value, dims, call.number(4, "eps", 1e-5))
    normed = _normed(call, value, (mean, scale), _affine(call, (2, 3), lambda one: one))
    return normed, mean, scale


def _group_norm(call: Call) -> tuple[Value, ...]:
    value = call.program.once(call.value(0))
    images, channels, groups = call.size(3), call.size(4), call.size(6)
    rank, per_group = len(value.shape), channels // groups
    grouped_shape: Shape = (images, groups, per_group, call.size(5))
    grouped = reshaped(call.program, value, grouped_shape)
    mean, scale = _statistics(call, grouped, (2, 3), call.number(7, "eps", 1e-5))

    def spread(one: Value) -> Value:
        shape = (images, channels, *(ONE for _ in range(rank - 2)))

        def place(body: Body, index: Index) -> Index:
            return (index[0], body.let("Index", f"{index[1]} / {per_group.factor}"), "0", "0")

        return Viewed(one, shape, place)

    affine = _affine(call, (1, 2), lambda one: _along(one, 1, rank))
    normed = _normed(call, value, (spread(mean), spread(scale)), affine)
    flat = (images, groups)
    return normed, *(reshaped(call.program, one, flat) for one in (mean, scale))


def _batch_statistics(call: Call, epsilon: float) -> tuple[Value, ...]:
    value = call.program.once(call.value(0))
    rank = len(value.shape)
    dims = tuple(one for one in range(rank) if one != 1)
    mean, scale = _statistics(call, value, dims, epsilon)
    affine = _affine(call, (1, 2), lambda one: _along(one, 1, rank))
    normed = _normed(call, value, (mean, scale), affine)
    flat = (value.shape[1],)
    return normed, *(reshaped(call.program, one, flat) for one in (mean, scale))


def _running_statistics(call: Call, epsilon: float) -> tuple[Value, ...]:
    value, mean, variance = call.value(0), call.value(3), call.value(4)
    rank = len(value.shape)
    wide = _statistics_dtype(variance.dtype)
    small = number(epsilon, computed(wide))
    scale = Pointwise(
        lambda codes: f"1 / std::sqrt({codes[0]} + {small})",
        (converted(variance, wide, call.sizes),),
        wide,
        variance.shape,
        call.sizes,
        3 + variance.cost,
    )
    statistics = [_along(one, 1, rank) for one in (mean, scale)]
    affine = _affine(call, (1, 2), lambda one: _along(one, 1, rank))
    return (_normed(call, value, statistics, affine),)


def _batch_norm(call: Call) -> tuple[Value, ...]:
    if call.flag(5, "training"):
        return _batch_statistics(call, call.number(7, "eps", 1e-5))
    return _running_statistics(call, call.number(7, "eps", 1e-5))


def _batch_norm_without_buffers(call: Call) -> tuple[Value, ...]:
    return _batch_statistics(call, call.number(5, "eps", 1e-5))


def _batch_norm_of_inference(call: Call) -> tuple[Value, ...]:
    return _running_statistics(call, call.number(6, "eps", 1e-5))


def _softmax(text: str) -> Lowering:
    def lower(call: Call) -> Value:
        given = call.value(0)
        value = call.program.once(given)
        dim = call.dim(1, len(value.shape))
        dtype = _statistics_dtype(value.dtype)
        reduction = Reduction(value, (dim,), EXPONENTIALS, (dtype, dtype), keeps=True)
        largest, total = reduced(call.program, reduction, call.node.name)
        operands = (value, largest, total)

        def function(codes: Sequence[str]) -> str:
            return text.format(*codes)

        cost = 5 + value.cost
        return Pointwise(function, operands, call.dtype, call.shape, call.sizes, cost)

    return lower


def lowerings() -> dict[str, Lowering]:
    """Return the lowering of each operator by its name, overload included."""
    return {
        "aten.native_layer_norm.default": _layer_norm,
        "aten.native_group_norm.default": _group_norm,
        "aten._native_batch_norm_legit_functional.default": _batch_norm,
        "aten._native_batch_norm_legit.default": _batch_norm,
        "aten.native_batch_norm.default": _batch_norm,
        "aten._native_batch_norm_legit.no_stats": _batch_norm_without_buffers,
        "aten._native_batch_norm_legit_no_training.default": _batch_norm_of_inference,
        "aten._softmax.default": _softmax("std::exp({0} - {1}) / {2}"),
        "aten._log_softmax.default": _softmax("{0} - {1} - std::log({2})"),
    }
