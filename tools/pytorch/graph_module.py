"""A graph as a torch module in its own dtypes: the baseline of a part, which has no source."""

import importlib
import operator
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .graph import Argument, Atom, AxisSize, Graph, Node, Ref, Special
from .interpreter import FLOATS, INTEGERS
from .operators import CONSTANTS, base_name, refuse_foreign
from .torch_library import load_torch

_RESHAPED = ("view", "_unsafe_view")
"""A part's inputs are contiguous, which they need not have been within the network."""


def graph_module(graph: Graph, axes: Mapping[str, int], device: str) -> Any:
    """Return a torch.fx module that takes the graph's inputs in order and returns its outputs.

    Raises:
        ToolError: The graph calls an operator that kopt does not know.
    """
    refuse_foreign(graph)
    fx: Any = importlib.import_module("torch.fx")
    torch = load_torch()
    maker = _Maker(torch, fx.Graph(), axes, device)
    values = maker.values
    for given in graph.inputs:
        values[Ref(node=given.name)] = maker.graph.placeholder(given.name)
    for node in graph.nodes:
        maker.add(node)
    maker.graph.output(tuple(values[output.value] for output in graph.outputs))
    return fx.GraphModule(torch.nn.Module(), maker.graph)


@dataclass
class _Maker:
    """The torch.fx graph while it is made."""

    torch: Any
    graph: Any
    axes: Mapping[str, int]
    device: str

    def __post_init__(self) -> None:
        """Begin without values."""
        self.values: dict[Ref, Any] = {}

    def add(self, node: Node) -> None:
        """Add one operator, and the results that it has several of."""
        _, name, overload = node.op.split(".")
        args = [self._argument(one) for one in node.args]
        kwargs = {key: self._argument(one) for key, one in node.kwargs.items()}
        function = getattr(getattr(self.torch.ops.aten, name), overload)
        if base_name(node.op) in _RESHAPED:
            function = self.torch.ops.aten.reshape.default
        if name in CONSTANTS and not name.endswith("_like") and not name.startswith("new_"):
            kwargs["device"] = self.torch.device(self.device)
        made = self.graph.call_function(function, tuple(args), kwargs)
        schema = function._schema.returns
        if len(schema) == 1 and str(schema[0].type) == "Tensor":
            self.values[Ref(node=node.name)] = made
            return
        for place, kind in enumerate(node.results):
            if kind is not None:
                part = self.graph.call_function(operator.getitem, (made, place))
                self.values[Ref(node=node.name, result=place)] = part

    def _argument(self, argument: Argument) -> Any:
        if isinstance(argument, tuple):
            return [self._atom(one) for one in argument]
        return self._atom(argument)

    def _atom(self, atom: Atom) -> Any:
        if isinstance(atom, Ref):
            return self.values[atom]
        if isinstance(atom, AxisSize):
            return self.axes[atom.axis]
        if isinstance(atom, Special):
            return float(atom.special)
        if isinstance(atom, str) and (atom in FLOATS or atom in INTEGERS):
            return getattr(self.torch, atom)
        return atom
