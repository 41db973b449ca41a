"""A graph run in float64 by torch, exactly or with a sample of the roundings of its operations.

Only operators that operators.py names are called, by their names in torch.ops. Floating-point
values of every dtype are float64 here; a conversion to a narrower one is a rounding that kernels
may make, so that it is skipped where results are exact and sampled where roundings are. One to
float8 is made: what is computed from it is meant to know it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

from kopt.config.errors import ToolError

from .composites import COMPOSITE_STEPS, batch_norm_by_batch
from .custom_operators import custom_operators
from .graph import Argument, Atom, AxisSize, Graph, Node, Ref, Special, refs
from .kept_contractions import KeptContractions
from .operators import (
    ABSOLUTE,
    CONSTANTS,
    CONTRACTIONS,
    CUSTOM,
    EXACT,
    EXPONENTIALS,
    RECURRENT,
    SUMS,
    VIEWS,
    base_name,
    is_known,
)
from .rounding_noise import UNIT, Roundings
from .torch_library import Tensor, load_torch, parts_of

FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")
_MADE = (*INTEGERS, "float8_e4m3fn")
"""Dtypes to which a conversion is made."""
_CONVOLUTION = ("stride", "padding", "dilation", "transposed", "output_padding", "groups")


@dataclass(frozen=True)
class BoundGraph:
    """A graph at one workload."""

    graph: Graph
    axes: Mapping[str, int]
    kept: KeptContractions | None = None
    """What an exact run leaves for sampled ones; None: each computes all."""
    device: str = "cpu"
    """Where the inputs are, and what the graph makes of nothing."""

    def run(
        self, inputs: Mapping[str, Tensor], rounding: Roundings | None = None
    ) -> dict[str, Tensor]:
        """Return every output of the graph for `inputs`, by tensor name.

        Raises:
            ToolError: The graph has an operator that is not allowed, or one that fails.
        """
        torch = load_torch()
        values: dict[str, Any] = {name: _lifted(torch, value) for name, value in inputs.items()}
        last = _last_readers(self.graph)
        unrounded = _unrounded(self.graph)
        for node in self.graph.nodes:
            step = _Step(torch, node, self, values)
            try:
                results = step.results(rounding, stores=node.name not in unrounded)
            except (RuntimeError, TypeError, IndexError, ValueError) as error:
                where = f" ({node.source})" if node.source else ""
                raise ToolError(f"{node.op} of {node.name} fails{where}: {error}") from error
            values[node.name] = results
            for name in last.get(node.name, ()):
                del values[name]
        return {
            output.name: _picked(values[output.value.node], output.value.result)
            for output in self.graph.outputs
        }


def _last_readers(graph: Graph) -> dict[str, list[str]]:
    """Return for each node the values that nothing reads after it."""
    last: dict[str, str] = {}
    for node in graph.nodes:
        last[node.name] = node.name
        for ref in refs(node):
            last[ref.node] = node.name
    kept = {output.value.node for output in graph.outputs}
    readers: dict[str, list[str]] = {}
    for name, node_name in last.items():
        if name not in kept:
            readers.setdefault(node_name, []).append(name)
    return readers


def _unrounded(graph: Graph) -> set[str]:
    """Return the nodes whose last rounding is that of an output, which the gates judge."""
    nodes = {node.name: node for node in graph.nodes}
    found: set[str] = set()
    for output in graph.outputs:
        node = nodes.get(output.value.node)
        while node is not None:
            found.add(node.name)
            first = next(refs(node), None)
            is_view = base_name(node.op) in VIEWS and first is not None
            node = nodes.get(first.node) if is_view and first is not None else None
    return found


def _lifted(torch: Any, value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(torch.float64) if value.is_floating_point() else value
    parts = parts_of(value)
    return value if parts is None else tuple(_lifted(torch, part) for part in parts)


def _picked(value: Any, result: int) -> Any:
    parts = parts_of(value)
    return value if parts is None else parts[result]


@dataclass(frozen=True)
class _Step:
    """One node while it runs."""

    torch: Any
    node: Node
    bound: BoundGraph
    values: Mapping[str, Any]

    def results(self, rounding: Roundings | None, *, stores: bool) -> Any:
        """Return what the node makes, lifted; moved by roundings where they are sampled."""
        if not is_known(self.node.op):
            raise ToolError(f"{self.node.op} is no operator that kopt interprets")
        args = [self.argument(one) for one in self.node.args]
        kwargs = {name: self.argument(one) for name, one in self.node.kwargs.items()}
        name, dtype = base_name(self.node.op), self._dtype()
        if dtype in FLOATS:
            args = self._without_integers(args)
        if rounding is None or dtype not in FLOATS or (name in EXACT and name != "_to_copy"):
            result = self.call(args, kwargs)
            if name in CONTRACTIONS and dtype in FLOATS and self.bound.kept is not None:
                reads = frozenset(ref.node for ref in refs(self.node))
                squares = partial(self._squares, args, kwargs)
                self.bound.kept.keep(self.node.name, reads, result, squares)
            return result
        rounding.unit = UNIT[dtype]
        result = self._rounded(rounding, name, args, kwargs)
        return self._stored(rounding, result) if stores else result

    def call(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Return the operator's results in float64, without its own roundings."""
        _, name, overload = self.node.op.split(".")
        if self.node.op in CUSTOM:
            return custom_operators()[name](*args)
        if name in ("view", "_unsafe_view"):  # a lifted tensor may have other strides
            return args[0].reshape(args[1])
        if name == "_to_copy" and self._is_lifted_to_itself(args[0]):
            return args[0]
        if name == "as_strided":
            args = [args[0].contiguous(), *args[1:]]
        function = getattr(getattr(self.torch.ops.aten, name), overload)
        if not isinstance(function, self.torch._ops.OpOverload):
            raise ToolError(f"{self.node.op} is no operator of torch {self.torch.__version__}")
        if name in CONSTANTS and self.bound.device != "cpu":
            kwargs = {**kwargs, "device": self.bound.device}
        return _lifted(self.torch, function(*args, **kwargs))

    def _is_lifted_to_itself(self, value: Any) -> bool:
        """Return whether a conversion of `value` is from a format held in float64 to another."""
        return self._dtype() in FLOATS and value.dtype == self.torch.float64

    def argument(self, argument: Argument) -> Any:
        """Return an argument as torch takes it."""
        if isinstance(argument, tuple):
            return [self._atom(one) for one in argument]
        return self._atom(argument)

    def _atom(self, atom: Atom) -> Any:
        if isinstance(atom, Ref):
            return _picked(self.values[atom.node], atom.result)
        if isinstance(atom, AxisSize):
            return self.bound.axes[atom.axis]
        if isinstance(atom, Special):
            return float(atom.special)
        if isinstance(atom, str) and atom in FLOATS:
            return self.torch.float64
        if isinstance(atom, str) and atom in _MADE:
            return getattr(self.torch, atom)
        return atom

    def _dtype(self) -> str:
        first = next((one for one in self.node.results if one is not None), None)
        return "" if first is None else first.dtype

    def _without_integers(self, args: list[Any]) -> list[Any]:
        """Return arguments whose integers are float64 if no other makes the result so.

        Integers divided by integers are float32 to torch, which would round.
        """
        tensors = [one for one in args if isinstance(one, self.torch.Tensor)]
        if base_name(self.node.op) in EXACT or any(one.is_floating_point() for one in tensors):
            return args
        return [
            one.to(self.torch.float64) if isinstance(one, self.torch.Tensor) else one
            for one in args
        ]

    def _stored(self, rounding: Roundings, result: Any) -> Any:
        parts = parts_of(result)
        if parts is None:
            return rounding.stored(result, self._dtype())
        return tuple(
            part if kind is None or part is None else rounding.stored(part, kind.dtype)
            for part, kind in zip(parts, self.node.results, strict=False)
        )

    def _rounded(
        self, rounding: Roundings, name: str, args: list[Any], kwargs: dict[str, Any]
    ) -> Any:
        if self.node.op.endswith(".no_stats"):
            return batch_norm_by_batch(rounding, *args)
        if name in COMPOSITE_STEPS:
            return COMPOSITE_STEPS[name](rounding, *args, **kwargs)
        if name in CONTRACTIONS:
            return self._contracted(rounding, name, args, kwargs)
        exact = self.call(args, kwargs)
        if name == "_to_copy":
            return exact
        if name in SUMS:
            return self._summed(rounding, args, kwargs, exact)
        if name in RECURRENT:
            steps = sum(args[0].shape[:2]) + args[0].shape[-1]
            return tuple(rounding.rounded(part, steps) for part in exact)
        if name in EXPONENTIALS:
            return rounding.exponential(exact, args[0])
        if name in ABSOLUTE:
            return rounding.absolute(exact, args[0], least=1.0 if name == "log1p" else 0.0)
        if name == "pow" and not isinstance(args[0], self.torch.Tensor):
            return rounding.rounded(exact, 32.0)
        return rounding.rounded(exact, 2.0 if name in ("pow", "rsqrt", "div", "lerp") else 1.0)

    def _summed(
        self, rounding: Roundings, args: list[Any], kwargs: dict[str, Any], exact: Any
    ) -> Any:
        name = base_name(self.node.op)
        terms = self._terms(name, args, exact)
        squares = self.call([args[0] * args[0], *args[1:]], kwargs)
        if name not in ("sum", "cumsum"):  # of means: sum((x / n)^2)
            squares = squares / terms
        return rounding.added(exact, squares, terms)

    def _contracted(
        self, rounding: Roundings, name: str, args: list[Any], kwargs: dict[str, Any]
    ) -> Any:
        kept = self.bound.kept or KeptContractions(frozenset())
        exact, squares = kept.result(self.node.name), kept.squares(self.node.name)
        if exact is None:
            exact = self.call(args, kwargs)
        if squares is None:
            squares = self._squares(args, kwargs)
        return rounding.contracted(name, exact, squares, _products(name, args))

    def _squares(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Return the sum of the squares of a contraction's terms."""
        squared = [one * one if isinstance(one, self.torch.Tensor) else one for one in args]
        weights = {key: value * value for key, value in kwargs.items()}
        return self.call(squared, weights)

    def _terms(self, name: str, args: list[Any], exact: Any) -> float:
        if name in ("sum", "mean"):
            return max(float(args[0].numel() / max(exact.numel(), 1)), 1.0)
        if name == "cumsum":
            return float(args[0].shape[args[1]]) if args[0].dim() else 1.0
        if name.startswith("avg_pool"):
            size = args[1] if len(args[1]) > 1 else [args[1][0]] * int(name[-2])
            return float(prod(size))
        return max(float(args[0].numel() / max(exact.numel(), 1)), 1.0)


def _products(name: str, args: list[Any]) -> float:
    """Return how many terms a contraction adds up for each element."""
    if name != "convolution":
        first = args[1] if name in ("addmm", "baddbmm") else args[0]
        return float(first.shape[-1])
    weight, groups = args[1], args[8] if len(args) > 8 else 1
    transposed = bool(args[6]) if len(args) > 6 else False
    channels = weight.shape[0] / groups if transposed else weight.shape[1]
    return float(prod(weight.shape[2:]) * channels)
