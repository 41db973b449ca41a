"""Norms and softmax as the operations that kernels make of them, each with its own roundings.

Taken as one operation a norm would hide what its statistics do: an error of the mean moves a whole
group, and one of the variance scales it.
"""

from collections.abc import Callable
from typing import Any

from .rounding_noise import Roundings
from .torch_library import Tensor

Composite = Callable[..., Any]


def _scaled(
    rounding: Roundings, apart: Tensor, inverse: Tensor, weight: Tensor | None, bias: Tensor | None
) -> Tensor:
    result = rounding.rounded(apart * inverse)
    if weight is not None:
        result = rounding.rounded(result * weight)
    return result if bias is None else rounding.rounded(result + bias)


def _inverse(rounding: Roundings, variance: Tensor, eps: float) -> Tensor:
    return rounding.rounded((rounding.rounded(variance + eps)).rsqrt(), 2.0)


def layer_norm(
    rounding: Roundings, x: Tensor, shape: list[int], *parameters: Any
) -> tuple[Tensor, ...]:
    """Return native_layer_norm(x, shape, weight, bias, eps)."""
    weight, bias, eps = parameters
    dims = list(range(x.dim() - len(shape), x.dim()))
    mean, apart, variance = rounding.variance(x, dims)
    inverse = _inverse(rounding, variance, eps)
    return _scaled(rounding, apart, inverse, weight, bias), mean, inverse


def group_norm(rounding: Roundings, x: Tensor, *parameters: Any) -> tuple[Tensor, ...]:
    """Return native_group_norm(x, weight, bias, N, C, HxW, groups, eps)."""
    weight, bias, batch, channels, _, groups, eps = parameters
    grouped = x.reshape(batch, groups, -1)
    mean, apart, variance = rounding.variance(grouped, [2])
    inverse = _inverse(rounding, variance, eps)
    wide = [1, channels] + [1] * (x.dim() - 2)
    result = rounding.rounded(apart * inverse).reshape(x.shape)
    if weight is not None:
        result = rounding.rounded(result * weight.reshape(wide))
    if bias is not None:
        result = rounding.rounded(result + bias.reshape(wide))
    return result, mean.reshape(batch, groups), inverse.reshape(batch, groups)


def _along_channels(x: Tensor, values: Tensor | None) -> Any:
    return None if values is None else values.reshape([1, -1] + [1] * (x.dim() - 2))


def batch_norm_by_batch(rounding: Roundings, x: Tensor, *parameters: Any) -> tuple[Tensor, ...]:
    """Return the norm by the batch's own statistics; running ones after it are of no account."""
    weight, bias, *_, eps = parameters
    dims = [0, *range(2, x.dim())]
    mean, apart, variance = rounding.variance(x, dims)
    inverse = _inverse(rounding, variance, eps)
    result = _scaled(rounding, apart, inverse, _along_channels(x, weight), _along_channels(x, bias))
    return result, mean.reshape(-1), inverse.reshape(-1), mean.reshape(-1), variance.reshape(-1)


def batch_norm_as_trained(rounding: Roundings, x: Tensor, *parameters: Any) -> tuple[Tensor, ...]:
    """Return _native_batch_norm_legit_no_training(x, weight, bias, mean, variance, ...)."""
    weight, bias, mean, variance, _, eps = parameters
    inverse = _inverse(rounding, _along_channels(x, variance), eps)
    center = _along_channels(x, mean)
    # A kernel may fold mean and weight into one factor and one addend, whose own roundings move a
    # whole channel to one side.
    apart = rounding.rounded(x - rounding.rounded(center))
    folded = rounding.moved(apart, lambda _, middle: middle.abs().mul_(rounding.unit), center)
    return (
        _scaled(rounding, folded, inverse, _along_channels(x, weight), _along_channels(x, bias)),
        x.new_empty(0),
        x.new_empty(0),
    )


def batch_norm(rounding: Roundings, x: Tensor, *parameters: Any) -> tuple[Tensor, ...]:
    """Return _native_batch_norm_legit with running statistics, or with training=True."""
    weight, bias, mean, variance, training, momentum, eps = parameters
    if training:
        return batch_norm_by_batch(rounding, x, weight, bias, eps)
    return batch_norm_as_trained(rounding, x, weight, bias, mean, variance, momentum, eps)


def _exponentials(rounding: Roundings, x: Tensor, dims: list[int]) -> tuple[Tensor, Tensor, Tensor]:
    less = rounding.rounded(x - x.amax(dims, keepdim=True))
    # exp(x) = 2^(x / ln 2): what a product loses is lost in the exponent.
    powers = rounding.moved(
        less.exp(),
        lambda power, below: below.abs().add_(1.0).mul_(power).mul_(rounding.unit),
        less,
    )
    return less, powers, rounding.sum(powers, dims)


def _logarithm(rounding: Roundings, total: Tensor) -> Tensor:
    return rounding.moved(total.log(), lambda values, _: values.abs().add_(1.0).mul_(rounding.unit))


def softmax(rounding: Roundings, x: Tensor, dim: int, _half_to_float: bool = False) -> Tensor:
    """Return _softmax(x, dim)."""
    _, powers, total = _exponentials(rounding, x, [dim])
    return rounding.rounded(powers / total, 2.0)


def log_softmax(rounding: Roundings, x: Tensor, dim: int, _half_to_float: bool = False) -> Tensor:
    """Return _log_softmax(x, dim)."""
    less, _, total = _exponentials(rounding, x, [dim])
    logarithm = _logarithm(rounding, total)
    # Kernels may keep max + log(sum) as one number and subtract it from x.
    largest = x.amax(dim, keepdim=True)
    kept = rounding.moved(less - logarithm, lambda _, most: most.abs().mul_(rounding.unit), largest)
    return rounding.rounded(kept)


def logsumexp(rounding: Roundings, x: Tensor, dim: list[int], keepdim: bool = False) -> Tensor:
    """Return the logarithm of the sum of exp(x) over `dim`."""
    dims = [one % max(x.dim(), 1) for one in dim]
    _, _, total = _exponentials(rounding, x, dims)
    logarithm = _logarithm(rounding, total)
    result = rounding.rounded(logarithm + x.amax(dims, keepdim=True))
    return result if keepdim else result.squeeze(dims)


def variance_of(
    rounding: Roundings, x: Tensor, dim: Any = None, **options: Any
) -> tuple[Tensor, Tensor]:
    """Return the variance and the mean over `dim` as var.correction takes them."""
    dims = [one % x.dim() for one in (dim or range(x.dim()))]
    mean, _, variance = rounding.variance(x, dims)
    count = 1
    for one in dims:
        count *= x.shape[one]
    correction = options.get("correction")
    less = 1 if correction is None else correction
    scaled = rounding.rounded(variance * (count / max(count - less, 0)))
    if options.get("keepdim"):
        return scaled, mean
    return scaled.squeeze(dims), mean.squeeze(dims)


def vector_norm(
    rounding: Roundings, x: Tensor, order: float = 2, dim: Any = None, keepdim: bool = False
) -> Tensor:
    """Return linalg_vector_norm for finite orders; others are choices and exact."""
    dims = [one % x.dim() for one in (dim or range(x.dim()))]
    if order in (float("inf"), float("-inf"), 0):
        return rounding.torch.linalg.vector_norm(x, order, dims, keepdim)
    total = rounding.sum(rounding.rounded(x.abs() ** order), dims, keepdim)
    return rounding.rounded(total ** (1.0 / order), 2.0)


COMPOSITE_STEPS: dict[str, Composite] = {
    "_softmax": softmax,
    "_log_softmax": log_softmax,
    "native_layer_norm": layer_norm,
    "native_group_norm": group_norm,
    "_native_batch_norm_legit_functional": batch_norm,
    "_native_batch_norm_legit_no_training": batch_norm_as_trained,
    "var": lambda *args, **options: variance_of(*args, **options)[0],
    "var_mean": variance_of,
    "std": lambda *args, **options: variance_of(*args, **options)[0].sqrt(),
    "linalg_vector_norm": vector_norm,
    "logsumexp": logsumexp,
}
