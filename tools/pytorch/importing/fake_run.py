"""A function run on fake tensors: which operators it calls, on which sizes, how much work it is.

No memory is taken and nothing is computed, so that a function can be tried at many sizes.
"""

import importlib
import logging
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any

from kopt.tools.pytorch.torch_library import load_torch, parts_of

from .known_values import known_values

MULTIPLIES_PER_ELEMENT = 32
"""Multiplications that the simulator does in the time of an element that is read or written."""


@dataclass(frozen=True)
class FakeRun:
    """What a forward pass called."""

    operators: tuple[tuple[str, tuple[float, ...]], ...]
    """Each with its floating-point arguments, in order."""
    shapes: tuple[tuple[int, ...], ...]
    """Of every tensor that was made, of weights and inputs before them, and of groups of norms."""
    weights: tuple[tuple[int, ...], ...]
    """Of parameters and buffers."""
    work: int
    """Elements made, and multiplications in their units."""
    inputs: tuple[tuple[int, ...], ...]
    numbers: tuple[int, ...]
    """Integers that operators compute with, in order: no sizes, strides or dimensions."""


def fake_run(build: Any, values: Any) -> FakeRun:
    """Return what the forward pass at `values` calls; whatever the user's code raises is raised."""
    torch = load_torch()
    base: Any = importlib.import_module("torch.utils._python_dispatch").TorchDispatchMode
    fake: Any = importlib.import_module("torch._subclasses.fake_tensor").FakeTensorMode

    operators: list[tuple[str, tuple[float, ...]]] = []
    shapes: list[tuple[int, ...]] = []
    numbers: list[int] = []
    work = 0

    class Recorder(base):  # type: ignore[misc] # torch's classes are Any here
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            nonlocal work
            result = func(*args, **(kwargs or {}))
            floats = tuple(one for one in args if type(one) is float)
            if "scaled_dot_product" in str(func) and "scale" not in (kwargs or {}):
                floats += (float(args[0].shape[-1]),)  # it scales by the root of this size
            operators.append((str(func), floats))
            numbers.extend(
                one
                for one, taken in zip(args, func._schema.arguments, strict=False)
                if type(one) is int and "int" not in str(taken.type).lower()
            )
            if "native_group_norm" in str(func):
                channels, places, groups = args[4:7]
                shapes.append((int(channels * places // groups),))  # what one statistic is of
            each = 1 + _terms(str(func), args) // MULTIPLIES_PER_ELEMENT
            for one in parts_of(result) or (result,):
                if isinstance(one, torch.Tensor):
                    shapes.append(tuple(int(n) for n in one.shape))
                    work += prod(shapes[-1]) * each
            return result

    with torch.no_grad(), _unlogged(), fake(allow_non_fake_inputs=True):
        with known_values():
            module, inputs = build(values)
        held = [one for one in inputs if isinstance(one, torch.Tensor)]
        given = tuple(tuple(int(n) for n in one.shape) for one in held)
        held = [*module.parameters(), *module.buffers()]
        weights = tuple(tuple(int(n) for n in one.shape) for one in held)
        shapes += [*weights, *given]
        with Recorder():
            module(*inputs)
    work += sum(map(prod, given))
    return FakeRun(tuple(operators), tuple(shapes), weights, work, given, tuple(numbers))


@contextmanager
def _unlogged() -> Generator[None]:
    """Keep torch from logging sizes that do not fit together: trying such is the point."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        yield
    finally:
        logging.disable(before)


def _terms(func: str, args: Any) -> int:
    """Return how many products each element of a contraction adds up."""
    name = func.split(".")[1] if "." in func else func
    if name in ("mm", "bmm"):
        return int(args[0].shape[-1])
    if name in ("addmm", "baddbmm"):
        return int(args[1].shape[-1])
    if "convolution" in name:
        return prod(int(n) for n in args[1].shape[1:])
    return 0
