"""Operators of one element each: arithmetic, comparisons, activations, conversions."""

from collections.abc import Callable, Sequence

from .call import Call
from .cuda_types import FLOATS, cast, computed, promoted
from .sizes import Shape
from .values import Constant, Pointwise, Value

Lowering = Callable[[Call], Value]

_STANDARD = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "ceil", "cos", "cosh", "erf", "erfc"),
    *("exp", "exp2", "expm1", "floor", "log", "log10", "log1p", "log2", "sin", "sinh", "sqrt"),
    *("tan", "tanh", "trunc"),
)
_UNARY = {
    **{name: f"std::{name}({{0}})" for name in _STANDARD},
    "abs": "std::abs({0})",
    "neg": "-{0}",
    "positive": "{0}",
    "reciprocal": "1 / {0}",
    "rsqrt": "1 / std::sqrt({0})",
    "relu": "op::relu({0})",
    "relu6": "op::at_most(op::relu({0}), {T}(6))",
    "round": "std::rint({0})",
    "sigmoid": "op::sigmoid({0})",
    "sign": "op::sign({0})",
    "square": "op::multiply({0}, {0})",
    "silu": "{0} * op::sigmoid({0})",
    "mish": "{0} * std::tanh(std::log1p(std::exp({0})))",
    "hardsigmoid": "op::at_most(op::relu({0} + {T}(3)), {T}(6)) / {T}(6)",
    "hardswish": "{0} * op::at_most(op::relu({0} + {T}(3)), {T}(6)) / {T}(6)",
    "log_sigmoid": "op::at_most({0}, {T}(0)) - std::log1p(std::exp({0} < 0 ? {0} : -{0}))",
    "softsign": "{0} / ({T}(1) + ({0} < 0 ? -{0} : {0}))",
}
_BINARY = {
    "add": "op::add({0}, {1})",
    "sub": "op::subtract({0}, {1})",
    "mul": "op::multiply({0}, {1})",
    "div": "{0} / {1}",
    "floor_divide": "op::divide_down({0}, {1})",
    "pow": "op::power({0}, {1})",
    "atan2": "std::atan2({0}, {1})",
    "fmod": "op::remainder_to_zero({0}, {1})",
    "remainder": "op::remainder({0}, {1})",
    "minimum": "op::minimum({0}, {1})",
    "maximum": "op::maximum({0}, {1})",
    "fmin": "std::fmin({0}, {1})",
    "fmax": "std::fmax({0}, {1})",
    "hypot": "std::hypot({0}, {1})",
    "copysign": "std::copysign({0}, {1})",
    "bitwise_and": "{0} & {1}",
    "bitwise_or": "{0} | {1}",
    "bitwise_xor": "{0} ^ {1}",
}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_OF_FLOATS = {"isnan": "op::is_nan({0})", "isinf": "op::is_inf({0})"}
_CHEAP = ("abs", "neg", "positive", "relu", "relu6", "sign", "square", "reciprocal", "trunc")
_COSTLY = 3


def lowerings() -> dict[str, Lowering]:
    """Return the lowering of each operator by its name, overload included."""
    table: dict[str, Lowering] = {}
    for name, text in _UNARY.items():
        table[f"aten.{name}.default"] = _lowering(text, 1, 1 if name in _CHEAP else _COSTLY)
    for name, text in _BINARY.items():
        for overload in ("Tensor", "Scalar", "default", "Tensor_Scalar", "Tensor_Tensor"):
            table[f"aten.{name}.{overload}"] = _lowering(text, 2, 1)
    for overload in ("Tensor", "Scalar"):
        table[f"aten.div.{overload}"] = _divide
        table[f"aten.true_divide.{overload}"] = _divide
    table["aten.pow.Scalar"] = _lowering(_BINARY["pow"], 2, _COSTLY)
    table["aten.pow.Tensor_Scalar"] = _power
    for name, sign in _COMPARISONS.items():
        for overload in ("Tensor", "Scalar"):
            table[f"aten.{name}.{overload}"] = _common(f"{{0}} {sign} {{1}}", 2)
    for name, text in _OF_FLOATS.items():
        table[f"aten.{name}.default"] = _common(text, 1)
    table |= {f"aten.logical_{name}.default": _logical(text) for name, text in _LOGICAL.items()}
    table |= {f"aten.{name}.Tensor": _with_alpha(sign) for name, sign in (("add", 1), ("sub", -1))}
    table |= {"aten.rsub.Scalar": _reverse_subtract, "aten.rsub.Tensor": _reverse_subtract}
    table |= {f"aten.{name}.Scalar": _with_alpha(sign) for name, sign in (("add", 1), ("sub", -1))}
    return table


_LOGICAL = {"not": "!{0}", "and": "{0} && {1}", "or": "{0} || {1}", "xor": "{0} != {1}"}


def pointwise(
    call: Call, operands: Sequence[Value], text: str, cost: int = 1, dtype: str = ""
) -> Value:
    """Return a function of operands, which are converted before.

    Args:
        call: Gives the result's shape and dtype.
        operands: Broadcast to the shape.
        text: The code, with {0}, {1} ... for the operands and {T} for their type.
        cost: Of one element, without the operands'.
        dtype: What the operands are converted to; the result's if it is empty.
    """
    target = dtype or call.dtype
    made = tuple(typed(one, target) for one in operands)
    sources = [one.dtype for one in made]

    def function(codes: Sequence[str]) -> str:
        pairs = zip(codes, sources, strict=True)
        ready = [_argument(cast(code, source, target)) for code, source in pairs]
        return text.format(*ready, T=computed(target))

    total = cost + sum(one.cost for one in made)
    is_magnitude = text == _UNARY["abs"]
    return Pointwise(
        function, made, call.dtype, call.shape, call.sizes, total, is_magnitude=is_magnitude
    )


def typed(value: Value, dtype: str) -> Value:
    """Return a constant in the dtype that it is used in; other values as they are."""
    return Constant(value.value, dtype, value.shape) if isinstance(value, Constant) else value


def _argument(code: str) -> str:
    return code if code.replace(".", "_").replace("_", "a").isalnum() else f"({code})"


def common_dtype(operands: Sequence[Value]) -> str:
    """Return the dtype in which operands are compared: numbers give way to tensors."""
    tensors = [one.dtype for one in operands if not isinstance(one, Constant)]
    numbers = [one.dtype for one in operands if isinstance(one, Constant)]
    if not tensors:
        return promoted(numbers)
    dtype = promoted(tensors)
    if dtype not in FLOATS and any(one in FLOATS for one in numbers):
        return "float32"
    return "int64" if dtype == "bool" and "int64" in numbers else dtype


def operands_of(call: Call, count: int) -> list[Value]:
    return [call.value(place) for place in range(count)]


def _lowering(text: str, count: int, cost: int) -> Lowering:
    return lambda call: pointwise(call, operands_of(call, count), text, cost)


def _divide(call: Call) -> Value:
    """Lower a division; by what is the same for a whole row once, where the schedule says so."""
    dividend, divisor = operands_of(call, 2)
    is_hoisted = call.program.schedule.hoists and call.dtype in FLOATS
    if is_hoisted and _is_one_a_row(divisor.shape) and not _is_one_a_row(call.shape):
        return pointwise(call, [dividend, divisor], "{0} * ({T}(1) / {1})")
    return pointwise(call, [dividend, divisor], _BINARY["div"])


def _is_one_a_row(shape: Shape) -> bool:
    return not shape or shape[-1].literal == 1


def _common(text: str, count: int) -> Lowering:
    def lower(call: Call) -> Value:
        operands = operands_of(call, count)
        return pointwise(call, operands, text, 1, common_dtype(operands))

    return lower


def _logical(text: str) -> Lowering:
    count = 2 if "{1}" in text else 1
    return lambda call: pointwise(call, operands_of(call, count), text, 1, "bool")


def _with_alpha(sign: int) -> Lowering:
    text = "op::add({0}, {1})" if sign > 0 else "op::subtract({0}, {1})"
    scaled = text.replace("{1}", "op::multiply({1}, {2})")

    def lower(call: Call) -> Value:
        alpha = call.argument(2, "alpha", 1)
        operands = operands_of(call, 2)
        if alpha == 1:
            return pointwise(call, operands, text)
        return pointwise(call, [*operands, call.as_value(alpha)], scaled, 2)

    return lower


def _reverse_subtract(call: Call) -> Value:
    """Lower rsub: the second operand less the first."""
    return pointwise(call, operands_of(call, 2), "op::subtract({1}, {0})")


def _power(call: Call) -> Value:
    exponent = call.argument(1)
    text = {1: "{0}", 2: "op::multiply({0}, {0})", 0.5: "std::sqrt({0})", -1: "1 / {0}"}
    text[3] = "op::multiply(op::multiply({0}, {0}), {0})"
    known = text.get(exponent) if isinstance(exponent, int | float) else None
    if known is not None and (exponent in (1, 2, 3) or call.dtype in FLOATS):
        return pointwise(call, [call.value(0)], known, 2)
    return pointwise(call, operands_of(call, 2), _BINARY["pow"], _COSTLY)
