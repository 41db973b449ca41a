"""Pointwise operators with arguments of their own: activations, choices, conversions, fillings."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from .call import Call
from .cuda_types import NARROW_FLOATS, cast, rounded
from .pointwise import operands_of, pointwise, typed
from .sizes import Size
from .values import Constant, Pointwise, Value, converted

Lowering = Callable[[Call], Value]
_COSTLY = 3


def _divide_by_mode(call: Call) -> Value:
    mode = call.argument(2, "rounding_mode")
    text = {"floor": "op::divide_down({0}, {1})", "trunc": "op::divide_to_zero({0}, {1})"}
    return pointwise(call, operands_of(call, 2), text.get(str(mode), "{0} / {1}"), 2)


def _not(call: Call) -> Value:
    return pointwise(call, [call.value(0)], "!{0}" if call.dtype == "bool" else "~{0}")


def _gelu(call: Call) -> Value:
    is_tanh = call.argument(1, "approximate", "none") == "tanh"
    name = "gelu_tanh" if is_tanh else "gelu"
    return pointwise(call, [call.value(0)], f"op::{name}({{0}})", _COSTLY)


def _leaky_relu(call: Call) -> Value:
    slope = Constant(call.number(1, "negative_slope", 0.01), call.dtype)
    return pointwise(call, [call.value(0), slope], "op::leaky_relu({0}, {1})", 2)


def _elu(call: Call) -> Value:
    names = ("alpha", "scale", "input_scale")
    given = [call.number(place, name, 1.0) for place, name in enumerate(names, 1)]
    numbers = [Constant(one, call.dtype) for one in given]
    return pointwise(call, [call.value(0), *numbers], "op::elu({0}, {1}, {2}, {3})", _COSTLY)


def _softplus(call: Call) -> Value:
    numbers = [
        Constant(call.number(1, "beta", 1.0), call.dtype),
        Constant(call.number(2, "threshold", 20.0), call.dtype),
    ]
    return pointwise(call, [call.value(0), *numbers], "op::softplus({0}, {1}, {2})", _COSTLY)


def _clamp(call: Call) -> Value:
    low, high = call.optional(1, "min"), call.optional(2, "max")
    value = call.value(0)
    if low is not None and high is not None:
        text = "op::at_most(op::at_least({0}, {1}), {2})"
        made = pointwise(call, [value, low, high], text, 2)
        bounds = _number(low), _number(high)
        is_whole = call.sizes.same_shape(value.shape, call.shape)
        if (
            bounds[0] is None
            or bounds[1] is None
            or not isinstance(made, Pointwise)
            or not is_whole
        ):
            return made
        return replace(made, clamps=(bounds[0], bounds[1]))
    if low is not None:
        return pointwise(call, [value, low], "op::at_least({0}, {1})")
    if high is not None:
        return pointwise(call, [value, high], "op::at_most({0}, {1})")
    return value


def _number(value: Value) -> float | None:
    """Return the number that a value is everywhere and always; None if it is no constant."""
    if isinstance(value, Constant) and not isinstance(value.value, Size):
        return float(value.value)
    return None


def _hardtanh(call: Call) -> Value:
    low, high = call.number(1, "min_val", -1.0), call.number(2, "max_val", 1.0)
    bounds = [Constant(low, call.dtype), Constant(high, call.dtype)]
    text = "op::at_most(op::at_least({0}, {1}), {2})"
    return pointwise(call, [call.value(0), *bounds], text, 2)


def _where(call: Call) -> Value:
    condition = converted(call.value(0), "bool", call.sizes)
    chosen = [typed(call.value(place), call.dtype) for place in (1, 2)]
    types = [one.dtype for one in chosen]

    def function(codes: Sequence[str]) -> str:
        pairs = zip(codes[1:], types, strict=True)
        yes, no = (cast(code, source, call.dtype) for code, source in pairs)
        return f"{codes[0]} ? {yes} : {no}"

    cost = 1 + condition.cost + sum(one.cost for one in chosen)
    operands = (condition, *chosen)
    return Pointwise(function, operands, call.dtype, call.shape, call.sizes, cost)


def _masked_fill(call: Call) -> Value:
    operands = [call.value(0), call.value(2)]
    mask = call.value(1)
    types = [one.dtype for one in operands]

    def function(codes: Sequence[str]) -> str:
        kept, filled = (
            cast(code, source, call.dtype) for code, source in zip(codes[:2], types, strict=True)
        )
        return f"{codes[2]} ? {filled} : {kept}"

    cost = 1 + mask.cost + sum(one.cost for one in operands)
    every = (*operands, mask)
    return Pointwise(function, every, call.dtype, call.shape, call.sizes, cost)


def _lerp(call: Call) -> Value:
    return pointwise(call, operands_of(call, 3), "{0} + {2} * ({1} - {0})", 2)


def _addcmul(call: Call) -> Value:
    scale = Constant(call.number(3, "value", 1.0), call.dtype)
    return pointwise(call, [*operands_of(call, 3), scale], "{0} + {3} * {1} * {2}", 2)


def _addcdiv(call: Call) -> Value:
    scale = Constant(call.number(3, "value", 1.0), call.dtype)
    return pointwise(call, [*operands_of(call, 3), scale], "{0} + {3} * {1} / {2}", 2)


def _convert(call: Call) -> Value:
    value = call.value(0)
    if call.dtype not in NARROW_FLOATS or value.dtype == call.dtype:
        return converted(value, call.dtype, call.sizes)
    source, target = value.dtype, call.dtype

    def function(codes: Sequence[str]) -> str:
        return rounded(target, cast(codes[0], source, target))

    # The user asks for this rounding, which later kernels may not leave out.
    cost = value.cost + 1
    return Pointwise(function, (value,), target, value.shape, call.sizes, cost, rounds=True)


def _filled(place: int) -> Lowering:
    def lower(call: Call) -> Value:
        value = call.value(place)
        if isinstance(value, Constant):
            return Constant(value.value, call.dtype, call.shape)
        return pointwise(call, [value], "{0}")

    return lower


def _same(number_: int) -> Lowering:
    return lambda call: Constant(number_, call.dtype, call.shape)


def lowerings() -> dict[str, Lowering]:
    """Return the lowering of each operator by its name, overload included."""
    return {
        "aten.div.Tensor_mode": _divide_by_mode,
        "aten.div.Scalar_mode": _divide_by_mode,
        "aten.bitwise_not.default": _not,
        "aten.gelu.default": _gelu,
        "aten.leaky_relu.default": _leaky_relu,
        "aten.elu.default": _elu,
        "aten.softplus.default": _softplus,
        "aten.clamp.default": _clamp,
        "aten.clamp.Tensor": _clamp,
        "aten.clamp_min.default": _clamp,
        "aten.clamp_min.Tensor": _clamp,
        "aten.hardtanh.default": _hardtanh,
        "aten.where.self": _where,
        "aten.where.ScalarSelf": _where,
        "aten.where.ScalarOther": _where,
        "aten.masked_fill.Scalar": _masked_fill,
        "aten.masked_fill.Tensor": _masked_fill,
        "aten.lerp.Tensor": _lerp,
        "aten.lerp.Scalar": _lerp,
        "aten.addcmul.default": _addcmul,
        "aten.addcdiv.default": _addcdiv,
        "aten._to_copy.default": _convert,
        "prims.convert_element_type.default": _convert,
        "aten.full.default": _filled(1),
        "aten.full_like.default": _filled(1),
        "aten.fill.Scalar": _filled(1),
        "aten.fill.Tensor": _filled(1),
        "aten.scalar_tensor.default": _filled(0),
        "aten.zeros.default": _same(0),
        "aten.zeros_like.default": _same(0),
        # Nothing may depend on what an empty tensor holds.
        "aten.empty.memory_format": _same(0),
        "aten.empty_permuted.default": _same(0),
        "aten.empty_like.default": _same(0),
        "aten.ones.default": _same(1),
        "aten.ones_like.default": _same(1),
    }
