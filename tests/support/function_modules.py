"""Functions and layers as modules, with irregular shapes, for tests of lowerings."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch import Tensor

Case = tuple[torch.nn.Module, Sequence[tuple[Tensor, ...]]]
Shape = tuple[int, ...]
OfOne = Callable[[Tensor], Any]
OfTwo = Callable[[Tensor, Tensor], Any]
OfThree = Callable[[Tensor, Tensor, Tensor], Any]


class Function(torch.nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        """Keep the function."""
        super().__init__()
        self._function = function

    def forward(self, *given: Tensor) -> Any:
        """Call the function."""
        return self._function(*given)


def on(function: OfOne, *shapes: Shape, dtype: torch.dtype = torch.float32) -> Case:
    """Return a function, or a layer, of one tensor, with normal inputs of these shapes."""
    return _case(function, [(shape,) for shape in shapes], dtype)


def on_two(function: OfTwo, *shapes: tuple[Shape, Shape]) -> Case:
    """Return a function of two tensors, with normal inputs; for each workload both shapes."""
    return _case(function, shapes, torch.float32)


def on_three(function: OfThree, *shapes: tuple[Shape, Shape, Shape]) -> Case:
    """Return a function of three tensors, with normal inputs; for each workload all shapes."""
    return _case(function, shapes, torch.float32)


def given_one(function: OfOne, inputs: Iterable[Tensor]) -> Case:
    """Return a function of one tensor with these inputs."""
    return Function(function), [(one,) for one in inputs]


def given_two(function: OfTwo, inputs: Iterable[tuple[Tensor, Tensor]]) -> Case:
    """Return a function of two tensors with these inputs."""
    return Function(function), list(inputs)


def given_three(function: OfThree, inputs: Iterable[tuple[Tensor, Tensor, Tensor]]) -> Case:
    """Return a function of three tensors with these inputs."""
    return Function(function), list(inputs)


def _case(
    function: Callable[..., Any], shapes: Sequence[tuple[Shape, ...]], dtype: torch.dtype
) -> Case:
    module = function if isinstance(function, torch.nn.Module) else Function(function)
    source = torch.Generator().manual_seed(7)
    return module.to(dtype), [
        tuple(torch.randn(shape, generator=source).to(dtype) for shape in one) for one in shapes
    ]
