"""The definition of a packaged problem: PyTorch text beside it as a graph over the problem's axes.

It is exported once, at sizes that no two axes share, and kept as `definition.json` beside the
problem.yaml: whoever writes kernels from it needs no torch. The text is torch_reference.py, or
torch_definition.py where rows keep what they had. A reference computes in float64 what it
wants exact; kernels compute it in float32. Its functions that are called as operators of kopt's own
(custom_operators.py) are these; where scales lie in tiles problem.yaml says, not the graph.
"""

import importlib.util
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kopt.config.errors import ToolError
from kopt.kernels.dtypes import DTYPE_SIZE_BYTES
from kopt.kernels.expressions import expression_names
from kopt.kernels.problem import Problem, make_workload, tensor_shape
from kopt.tools.pytorch.custom_operators import custom_operators
from kopt.tools.pytorch.graph import (
    Argument,
    Atom,
    AxisSize,
    Graph,
    GraphOutput,
    Node,
    Ref,
    Size,
    ValueType,
)
from kopt.tools.pytorch.torch_library import load_torch

from .exporting import export_module
from .single_precision import in_single_precision

_REFERENCE_FILES = ("torch_reference.py", "torch_definition.py")
_SIZES = (4 * 1009, 128 * 1013, 128 * 1019, 128 * 1021)
"""Values of the variable axes, the rows first: such that products and shares stand out, and
that nothing is padded."""
_COUNTED = 1 << 40
"""Beyond it an integer means `to the end`."""


def export_definition(problem: Problem) -> Graph:
    """Return what `problem` computes, as one graph for every value of its axes.

    The scalars of the problem are inputs of no dimension. They are the constants of the reference
    that have their names in capitals.

    Raises:
        ToolError: torch cannot export the reference, or a size in it is not the value of an axis.
    """
    reference = _reference_module(problem)
    axes = make_workload(problem, dict(zip(problem.variable_axes, _SIZES, strict=False))).axes
    torch = load_torch()

    read = [tensor for tensor in problem.tensors if tensor.role != "out"]

    def forward(_: Any, *args: Any) -> Any:
        for scalar, value in zip(problem.scalars, args[len(read) :], strict=True):
            setattr(reference, scalar.name.upper(), value)
        return reference.run(*args[: len(read)])

    inputs = [
        torch.zeros(tensor_shape(tensor, axes), dtype=getattr(torch, tensor.dtype), device="meta")
        for tensor in read
    ]
    scalars = [torch.zeros((), dtype=torch.float32, device="meta") for _ in problem.scalars]
    exported = export_module(
        type("Definition", (torch.nn.Module,), {"forward": forward})(),
        (*inputs, *scalars),
        (Path(reference.__file__),),
        frozenset(DTYPE_SIZE_BYTES),
    )
    names = [*(tensor.name for tensor in read), *(scalar.name for scalar in problem.scalars)]
    renamed = {name: names[place] for name, place in exported.places.items()}
    written = [tensor.name for tensor in problem.tensors if tensor.role != "in"]
    graph = in_single_precision(exported.graph)
    return _Axes(problem, axes).graph(graph, renamed, written)


def definition_text(graph: Graph) -> str:
    """Return definition.json: a line for each input, node and output."""
    document = graph.model_dump(mode="json", exclude_defaults=True)
    parts = [f' "torch": {json.dumps(document["torch"])}']
    for key in ("inputs", "nodes", "outputs"):
        lines = ",\n".join(f"  {json.dumps(one)}" for one in document[key])
        parts.append(f' "{key}": [\n{lines}\n ]')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _reference_module(problem: Problem) -> Any:
    paths = [problem.folder / name for name in _REFERENCE_FILES]
    path = next((one for one in paths if one.is_file()), paths[0])
    spec = importlib.util.spec_from_file_location(f"{problem.name}_reference", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ToolError(f"{path} is missing: a definition is made of it")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, replaced in {**custom_operators(), "tiled": _as_it_is}.items():
        if hasattr(module, name):
            setattr(module, name, replaced)
    return module


def _as_it_is(scales: Any) -> Any:
    return scales


class _Axes:
    """The axes of a problem by their values at the export."""

    def __init__(self, problem: Problem, values: Mapping[str, int]) -> None:
        self._names: dict[int, str] = {}
        for axis, expression in problem.axes.items():
            if expression is None or expression_names(expression):
                self._names.setdefault(values[axis], axis)
        self._least = min(self._names, default=_COUNTED)

    def graph(self, graph: Graph, inputs: Mapping[str, str], outputs: Sequence[str]) -> Graph:
        """Return `graph` over axes, its inputs and outputs called as the problem's."""
        given = [
            one.model_copy(update={"name": inputs[one.name], "type": self._type(one.type)})
            for one in graph.inputs
        ]
        known = set(inputs.values())
        names = {
            node.name: f"{node.name}_made" if node.name in known else node.name
            for node in graph.nodes
        } | dict(inputs)
        nodes = [self._node(node, names) for node in graph.nodes]
        written = [
            GraphOutput(name=name, value=self._ref(one.value, names))
            for name, one in zip(outputs, graph.outputs, strict=True)
        ]
        return Graph(
            torch=graph.torch, inputs=tuple(given), nodes=tuple(nodes), outputs=tuple(written)
        )

    def _node(self, node: Node, names: Mapping[str, str]) -> Node:
        return node.model_copy(
            update={
                "name": names[node.name],
                "args": tuple(self._argument(one, names) for one in node.args),
                "kwargs": {key: self._argument(one, names) for key, one in node.kwargs.items()},
                "results": tuple(one and self._type(one) for one in node.results),
                "source": "",
                "module": "",
            }
        )

    def _argument(self, given: Argument, names: Mapping[str, str]) -> Argument:
        if isinstance(given, tuple):
            return tuple(self._atom(one, names) for one in given)
        return self._atom(given, names)

    def _atom(self, given: Atom, names: Mapping[str, str]) -> Atom:
        if isinstance(given, Ref):
            return self._ref(given, names)
        is_size = isinstance(given, int) and not isinstance(given, bool)
        return self._size(given) if is_size and isinstance(given, int) else given

    def _ref(self, given: Ref, names: Mapping[str, str]) -> Ref:
        return given.model_copy(update={"node": names[given.node]})

    def _type(self, given: ValueType) -> ValueType:
        return ValueType(dtype=given.dtype, shape=tuple(self._size(one) for one in given.shape))

    def _size(self, given: Size) -> Size:
        if isinstance(given, AxisSize):
            return given
        name = self._names.get(given)
        if name is not None:
            return AxisSize(axis=name)
        if self._least <= given < _COUNTED:
            raise ToolError(
                f"the reference has a size of {given}, which is no axis of the problem's"
            )
        return given
