"""Small graphs written by hand, with their problems: no torch is needed."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from kopt.kernels.problem import Problem, Role, TensorSpec, Workload, usual_tolerance
from kopt.tools.pytorch.graph import (
    AxisSize,
    Drawing,
    Graph,
    GraphInput,
    GraphOutput,
    Node,
    Ref,
    Size,
    ValueType,
)

ROWS = AxisSize(axis="B")
COLUMNS = AxisSize(axis="N")


def value_type(*shape: Size, dtype: str = "float32") -> ValueType:
    """Return the type of a value."""
    return ValueType(dtype=dtype, shape=shape)


def graph_of(inputs: Mapping[str, ValueType], nodes: Sequence[Node], *outputs: Ref) -> Graph:
    """Return a graph whose outputs are out0, out1 ..."""
    return Graph(
        torch="2.13.0",
        inputs=tuple(
            GraphInput(name=name, kind="input", type=given, drawing=Drawing(kind="normal"))
            for name, given in inputs.items()
        ),
        nodes=tuple(nodes),
        outputs=tuple(
            GraphOutput(name=f"out{place}", value=ref) for place, ref in enumerate(outputs)
        ),
    )


def in_place(graph: Graph, **outputs: str) -> Graph:
    """Return `graph` with outputs that are stored where an input was: `out0="x"`."""
    renamed = [
        one.model_copy(update={"name": outputs.get(one.name, one.name)}) for one in graph.outputs
    ]
    return graph.model_copy(update={"outputs": tuple(renamed)})


def problem_of(graph: Graph, *workloads: Mapping[str, int], static: Sequence[str] = ()) -> Problem:
    """Return the problem that `graph` computes at these values of its axes.

    Args:
        graph: An output that is called as an input is stored in its place.
        workloads: The values of the axes.
        static: Inputs that no earlier kernel writes.
    """
    axes: dict[str, str | None] = dict.fromkeys(workloads[0])
    values = [dict(one) for one in workloads]

    def axis(size: Size) -> str:
        if isinstance(size, AxisSize):
            return size.axis
        axes.setdefault(f"C{size}", str(size))
        for one in values:
            one[f"C{size}"] = size
        return f"C{size}"

    def tensor(name: str, role: Role, given: ValueType) -> TensorSpec:
        return TensorSpec(
            name=name,
            role=role,
            dtype=given.dtype,
            shape=tuple(map(axis, given.shape)),
            static=name in static,
        )

    written = {one.name: graph.type_of(one.value) for one in graph.outputs}
    tensors = [
        tensor(one.name, "inout" if one.name in written else "in", one.type) for one in graph.inputs
    ]
    given = {one.name for one in graph.inputs}
    tensors += [tensor(name, "out", kind) for name, kind in written.items() if name not in given]
    return Problem(
        name="made",
        op_type="pytorch",
        description="",
        axes=axes,
        tensors=tuple(tensors),
        row_axis=next(iter(axes)),
        workloads=tuple(Workload(name=f"w{number}", axes=one) for number, one in enumerate(values)),
        tolerance=usual_tolerance(tensors),
        folder=Path(),
    )
