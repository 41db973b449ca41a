"""How a module's forward is called, and what it returns: for exports that take its place."""

import inspect
from collections.abc import Mapping
from typing import Any, Literal

from kopt.kernels.record import Record
from kopt.tools.pytorch.torch_library import load_torch

Returns = Literal["tensor", "tuple", "list", "other"]


class ForwardArgument(Record):
    """One argument of forward, in its place."""

    name: str
    kind: Literal["tensor", "value", "other"]
    """`other`: a list or dict of tensors, say."""
    tensor: str | None = None
    """Name of the problem's tensor; None where the function does not read it."""
    value: bool | int | float | str | None = None
    """What the function was imported with; another one makes another function."""


class ForwardCall(Record):
    """The arguments of forward, and in what its outputs come."""

    arguments: tuple[ForwardArgument, ...]
    returns: Returns

    @property
    def is_plain(self) -> bool:
        """Whether arguments are tensors and numbers, and outputs are tensors in a row."""
        return self.returns != "other" and all(one.kind != "other" for one in self.arguments)


def forward_call(
    module: Any, inputs: tuple[Any, ...], places: Mapping[str, int], returned: tuple[Any, int]
) -> ForwardCall:
    """Return the call of `module` with `inputs`.

    Args:
        module: A torch.nn.Module.
        inputs: Its positional arguments.
        places: Place among the tensors of `inputs`, by the name of the graph's input.
        returned: torch's description of what it returns, and how many tensors are in it.
    """
    torch = load_torch()
    named = {place: name for name, place in places.items()}
    arguments: list[ForwardArgument] = []
    tensors = 0
    for name, value in zip(_names(module, len(inputs)), inputs, strict=True):
        if isinstance(value, torch.Tensor):
            tensor = named.get(tensors)
            arguments.append(ForwardArgument(name=name, kind="tensor", tensor=tensor))
        elif value is None or isinstance(value, bool | int | float | str):
            arguments.append(ForwardArgument(name=name, kind="value", value=value))
        else:
            arguments.append(ForwardArgument(name=name, kind="other"))
        leaves = torch.utils._pytree.tree_leaves(value)
        tensors += sum(isinstance(one, torch.Tensor) for one in leaves)
    return ForwardCall(arguments=tuple(arguments), returns=_returns(*returned))


def _names(module: Any, count: int) -> list[str]:
    parameters = inspect.signature(module.forward).parameters.values()
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    names = [one.name for one in parameters if one.kind in plain][:count]
    return names + [f"argument{place}" for place in range(len(names), count)]


def _returns(spec: Any, tensors: int) -> Returns:
    if spec.num_leaves != tensors:
        return "other"
    if spec.is_leaf():
        return "tensor"
    children = spec.children() if callable(getattr(spec, "children", None)) else spec.children_specs
    if not all(one.is_leaf() for one in children):
        return "other"
    return "tuple" if spec.type is tuple else "list" if spec.type is list else "other"
