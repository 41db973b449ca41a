"""Small PyTorch modules as graphs and problems, without the importer: several shapes, one graph."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt
import torch

from kopt.kernels.problem import Problem, TensorSpec, Workload, usual_tolerance
from kopt.tools.pytorch.graph import (
    AxisSize,
    Drawing,
    Graph,
    GraphInput,
    GraphOutput,
    Node,
    Ref,
    Special,
    ValueType,
)

from .joint_exports import ExportedPart, Inputs, export_parts

Array = npt.NDArray[Any]
_LEFT_OUT = ("device", "layout", "memory_format", "pin_memory", "generator")
_exported: WeakKeyDictionary[torch.nn.Module, "Exported"] = WeakKeyDictionary()
"""Each module that this process has exported: tests run the same ones with other tune values."""


def exported_together(
    modules: Mapping[str, tuple[torch.nn.Module, Inputs]],
) -> dict[str, "Exported"]:
    """Return each module at its shapes; torch exports them as one, once for each shape.

    An export takes half a second however small the module is.
    """
    assert len({module for module, _ in modules.values()}) == len(modules), (
        "each has its own inputs"
    )
    fresh = [one for one in modules.values() if one[0] not in _exported]
    for count in {len(inputs) for _, inputs in fresh}:
        same = [one for one in fresh if len(one[1]) == count]
        parts = [export_parts(same, shape) for shape in range(count)]
        for (module, _), *at_shapes in zip(same, *parts, strict=True):
            _exported[module] = Exported(at_shapes)
    return {name: _exported[module] for name, (module, _) in modules.items()}


class Exported:
    """A module at several shapes: the problem, the graph, and what goes in and comes out."""

    def __init__(self, parts: Sequence[ExportedPart]) -> None:
        """Make one graph of the module's part at each shape."""
        self._axes: dict[tuple[int, ...], str] = {}
        self.graph = self._graph(parts)
        self.inputs = [part.inputs for part in parts]
        self.outputs = [part.outputs for part in parts]
        self.problem = self._problem(len(parts))

    def _graph(self, parts: Sequence[ExportedPart]) -> Graph:
        assert len({len(part.nodes) for part in parts}) == 1, "the shapes give different graphs"
        inputs: list[GraphInput] = []
        nodes: list[Node] = []
        for same in zip(*(part.nodes for part in parts), strict=True):
            node = same[0]
            assert all(str(other.target) == str(node.target) for other in same)
            if node.op == "placeholder":
                inputs.append(self._input(same))
            elif node.op == "call_function" and not _is_aside(node):
                nodes.append(self._node(same))
        outputs = [
            GraphOutput(name=f"out{place}", value=cast(Ref, _argument(one)))
            for place, one in enumerate(parts[0].returned)
        ]
        return Graph(
            torch=torch.__version__,
            inputs=tuple(inputs),
            nodes=tuple(nodes),
            outputs=tuple(outputs),
        )

    def _input(self, same: Sequence[Any]) -> GraphInput:
        return GraphInput(
            name=same[0].name,
            kind="input",
            type=self._type([node.meta["val"] for node in same]),
            drawing=Drawing(kind="normal"),
        )

    def _node(self, same: Sequence[Any]) -> Node:
        values = [node.meta["val"] for node in same]
        results: tuple[ValueType | None, ...]
        if not isinstance(values[0], tuple | list):
            results = (self._type(values),)
        else:
            results = tuple(
                None if column[0] is None else self._type(column)
                for column in zip(*values, strict=True)
            )
        converted = [tuple(map(_argument, node.args)) for node in same]
        kwargs = {
            name: self._merged([_argument(node.kwargs[name]) for node in same])
            for name in same[0].kwargs
            if name not in _LEFT_OUT
        }
        args = tuple(self._merged(list(column)) for column in zip(*converted, strict=True))
        trace = (same[0].meta.get("stack_trace") or "").strip().splitlines()
        return Node(
            name=same[0].name,
            op=str(same[0].target),
            args=args,
            kwargs=kwargs,
            results=results,
            source=trace[-1].strip() if trace else "",
        )

    def _type(self, values: Sequence[torch.Tensor]) -> ValueType:
        shape = [self._size(column) for column in zip(*(one.shape for one in values), strict=True)]
        return ValueType(dtype=str(values[0].dtype).removeprefix("torch."), shape=tuple(shape))

    def _size(self, column: Sequence[int]) -> int | AxisSize:
        values = tuple(int(one) for one in column)
        if len(set(values)) == 1:
            return values[0]
        return AxisSize(axis=self._axes.setdefault(values, f"N{len(self._axes)}"))

    def _merged(self, column: list[Any]) -> Any:
        if isinstance(column[0], tuple):
            return tuple(self._merged(list(one)) for one in zip(*column, strict=True))
        if type(column[0]) is int and len(set(column)) > 1:
            return self._size(column)
        assert all(one == column[0] for one in column), column
        return column[0]

    def _problem(self, count: int) -> Problem:
        axes: dict[str, str | None] = dict.fromkeys(self._axes.values())
        workloads = [
            {name: values[number] for values, name in self._axes.items()} for number in range(count)
        ]

        def axis(size: int | AxisSize) -> str:
            if isinstance(size, AxisSize):
                return size.axis
            name = f"C{size}"
            axes.setdefault(name, str(size))
            for workload in workloads:
                workload[name] = size
            return name

        tensors = [
            TensorSpec(
                name=one.name,
                role="in",
                dtype=one.type.dtype,
                shape=tuple(map(axis, one.type.shape)),
            )
            for one in self.graph.inputs
        ]
        for output in self.graph.outputs:
            given = self.graph.type_of(output.value)
            shape = tuple(map(axis, given.shape))
            tensors.append(TensorSpec(name=output.name, role="out", dtype=given.dtype, shape=shape))
        return Problem(
            name="exported",
            op_type="pytorch",
            description="",
            axes=axes,
            tensors=tuple(tensors),
            row_axis=next(iter(axes), ""),
            workloads=tuple(
                Workload(name=f"w{number}", axes=values) for number, values in enumerate(workloads)
            ),
            tolerance=usual_tolerance(tensors),
            folder=Path(),
        )


def _is_aside(node: Any) -> bool:
    """Return whether a node computes nothing: it picks a result, or checks a dtype."""
    return "getitem" in str(node.target) or "_assert_tensor_metadata" in str(node.target)


def _ref(node: Any) -> Ref:
    if "getitem" in str(node.target):
        return Ref(node=node.args[0].name, result=node.args[1])
    return Ref(node=node.name)


def _argument(value: Any) -> Any:
    if isinstance(value, torch.fx.Node):
        return _ref(value)
    if isinstance(value, list | tuple):
        return tuple(map(_argument, cast(list[Any], value)))
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, float) and not np.isfinite(value):
        return Special(special=cast(Any, str(value)))
    if isinstance(value, torch.device | torch.layout | torch.memory_format):
        return None
    return value
