"""Functions and layers as modules, with irregular shapes, for tests of lowerings."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

Case = tuple[torch.nn.Module, Sequence[tuple[torch.Tensor, ...]]]
Shapes = tuple[tuple[int, ...], ...]


class Function(torch.nn.Module):
    """A function of tensors as a module."""

    def __init__(self, function: Callable[..., Any], *layers: torch.nn.Module) -> None:
        """Keep the function, and layers that it uses."""
        super().__init__()
        self.layers = torch.nn.ModuleList(layers)
        self._function = function

    def forward(self, *given: torch.Tensor) -> Any:
        """Call the function."""
        return self._function(*given)


def case(function: Callable[..., Any], *shapes: Shapes, dtype: Any = torch.float32) -> Case:
    """Return a function with normal inputs, whose shapes stand side by side for each workload."""
    module = function if isinstance(function, torch.nn.Module) else Function(function)
    torch.manual_seed(len(shapes) + sum(len(one) for one in shapes))
    return module.to(dtype), [
        tuple(torch.randn(shape).to(dtype) for shape in one) for one in shapes
    ]


def on(function: Callable[..., Any], *shapes: tuple[int, ...], dtype: Any = torch.float32) -> Case:
    """Return a function of one tensor at several shapes."""
    return case(function, *((shape,) for shape in shapes), dtype=dtype)
