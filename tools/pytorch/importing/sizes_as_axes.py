"""Graphs of one function at several shapes made one: sizes that differ become axes.

Every integer of the graphs, in shapes and in arguments, has a value at each workload. Where they
agree the integer stays; each other vector of values is an axis, whose name is guessed from the
inputs. The batch has a vector of its own, for its small value is no other size's (shrinking.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations_with_replacement

from kopt.config.errors import ToolError
from kopt.kernels.problem_scope import MAX_AXIS
from kopt.kernels.record import Record
from kopt.tools.pytorch.graph import (
    Argument,
    Atom,
    AxisSize,
    Graph,
    GraphInput,
    Node,
    Size,
    ValueType,
)

_INPUT_NAMES = {
    1: ("B",),
    2: ("B", "C"),
    3: ("B", "S", "C"),
    4: ("B", "C", "H", "W"),
    5: ("B", "C", "D", "H", "W"),
}
"""What the dimensions of an input are usually called, by their number."""

Values = tuple[int, ...]

SMALL, OFFICIAL = "small", "official"
"""The workload that is checked everywhere, and the one that the user's code asks for."""


class Measured(Record):
    """The graph at one workload: sizes are integers."""

    workload: str
    graph: Graph


class SizedGraph(Record):
    """A graph over axes, and their values at each workload."""

    graph: Graph
    axes: dict[str, str | None]
    """Name to expression over those before it; None: each workload has its value."""
    workloads: dict[str, dict[str, int]]
    """Values of all axes by workload, the small one first."""
    batch: str | None = None
    """Axis of the first input's first dimension, if no other size is the same."""


@dataclass
class _Axes:
    """The axes so far, by their values."""

    count: int
    names: dict[Values, str] = field(default_factory=dict[Values, str])
    forced: frozenset[Values] = frozenset()
    """Values that are an axis although they are the same everywhere."""
    numbered: int = 0

    def size(self, values: Values, wanted: str = "") -> Size:
        """Return the size with these values: a number, or an axis, which is named if new."""
        if len(set(values)) == 1 and values not in self.forced:
            return values[0]
        if values not in self.names:
            if not all(1 <= value <= MAX_AXIS for value in values):
                raise ToolError(
                    f"an integer of the function is {', '.join(map(str, values))} at its shapes,"
                    " and no size: choose by --small what does not change it"
                )
            name = wanted
            while not name or name in self.names.values():
                self.numbered += 1
                name = f"N{self.numbered}"
            self.names[values] = name
        return AxisSize(axis=self.names[values])


def with_axes(measured: Sequence[Measured], batch: int | None) -> SizedGraph:
    """Return the graphs as one.

    Raises:
        ToolError: They are not one function: a number that is no size differs.
    """
    graphs = [one.graph for one in measured]
    axes = _Axes(len(graphs))
    first = next(
        (one for one in zip(*(g.inputs for g in graphs), strict=True) if one[0].kind == "input"),
        None,
    )
    rows: Values | None = None
    if batch is not None and first is not None and first[0].type.shape:
        rows = tuple(_number(one.type.shape[0]) for one in first)
        if len(set(rows)) == 1 and all(_sizes_agree(graphs)):
            axes.forced = frozenset({rows})  # some axis must vary
        _ = axes.size(rows, "B") if len(set(rows)) > 1 or axes.forced else None
    given = list(zip(*(graph.inputs for graph in graphs), strict=True))
    for one in given:  # what the user passes names the axes
        if one[0].kind == "input":
            _input(axes, one)
    inputs = tuple(_input(axes, one) for one in given)
    nodes = tuple(_node(axes, nodes) for nodes in zip(*(g.nodes for g in graphs), strict=True))
    graph = graphs[0].model_copy(update={"inputs": inputs, "nodes": nodes})
    graph = graph.model_copy(
        update={"inputs": tuple(_bounded(axes, one, graphs[0]) for one in inputs)}
    )
    values = {name: vector for vector, name in axes.names.items()}
    order = ordered(list(values), graph)
    batch_axis = None if rows is None else axes.names.get(rows)
    return SizedGraph(
        graph=Graph.model_validate(graph.model_dump()),
        axes=expressed(order, values, input_axes(graph), batch_axis),
        workloads={
            one.workload: {name: values[name][place] for name in order}
            for place, one in enumerate(measured)
        },
        batch=batch_axis if batch_axis is not None and is_alone(graph, batch_axis) else None,
    )


def _sizes_agree(graphs: Sequence[Graph]) -> Iterator[bool]:
    for given in zip(*(graph.inputs for graph in graphs), strict=True):
        yield len({one.type.shape for one in given}) == 1


def _number(size: Size) -> int:
    if isinstance(size, AxisSize):
        raise TypeError("a measured graph has numbers for sizes")
    return size


def _shape(
    axes: _Axes, shapes: Sequence[tuple[Size, ...]], names: Sequence[str] = ()
) -> tuple[Size, ...]:
    wanted = [*names, *[""] * len(shapes[0])]
    return tuple(
        axes.size(tuple(_number(one) for one in values), name)
        for values, name in zip(zip(*shapes, strict=True), wanted, strict=False)
    )


def _type(axes: _Axes, types: Sequence[ValueType], names: Sequence[str] = ()) -> ValueType:
    shape = _shape(axes, [one.shape for one in types], names)
    return types[0].model_copy(update={"shape": shape})


def _input(axes: _Axes, given: Sequence[GraphInput]) -> GraphInput:
    first = given[0]
    names = _INPUT_NAMES.get(len(first.type.shape), ()) if first.kind == "input" else ()
    return first.model_copy(update={"type": _type(axes, [one.type for one in given], names)})


def _node(axes: _Axes, nodes: Sequence[Node]) -> Node:
    first = nodes[0]
    results: list[ValueType | None] = []
    for types in zip(*(node.results for node in nodes), strict=True):
        known = [one for one in types if one is not None]
        results.append(_type(axes, known) if known else None)
    return first.model_copy(
        update={
            "args": tuple(
                _argument(axes, one, first) for one in zip(*(n.args for n in nodes), strict=True)
            ),
            "kwargs": {
                key: _argument(axes, [node.kwargs[key] for node in nodes], first)
                for key in first.kwargs
            },
            "results": tuple(results),
        }
    )


def _argument(axes: _Axes, values: Sequence[Argument], node: Node) -> Argument:
    if isinstance(values[0], tuple):
        parts = [one for one in values if isinstance(one, tuple)]
        return tuple(_atom(axes, one, node) for one in zip(*parts, strict=True))
    return _atom(axes, [one for one in values if not isinstance(one, tuple)], node)


def _atom(axes: _Axes, values: Sequence[Atom], node: Node) -> Atom:
    if all(one == values[0] for one in values):
        return values[0]
    if all(type(one) is int for one in values):
        return axes.size(tuple(one for one in values if isinstance(one, int)))
    where = f" ({node.source})" if node.source else ""
    raise ToolError(
        f"{node.op} takes {', '.join(map(str, values))} at the shapes{where}: a number that depends"
        " on a size makes another function of it; choose by --small what keeps it"
    )


def _bounded(axes: _Axes, given: GraphInput, small: Graph) -> GraphInput:
    """Return an input of indices with the size that bounds them, if one is just above them."""
    drawing = given.drawing
    if drawing.kind != "integers" or drawing.low < 0:
        return given
    known = {vector[0]: name for vector, name in axes.names.items()}
    shapes = [one.type.shape for one in small.inputs]
    shapes += [one.shape for node in small.nodes for one in node.results if one]
    sizes = [_number(one) for shape in shapes for one in shape]
    above = sorted({one for one in sizes if one > drawing.high})
    if not above or drawing.high < 0.7 * above[0]:
        return given
    below: Size = AxisSize(axis=known[above[0]]) if above[0] in known else above[0]
    return given.model_copy(update={"drawing": drawing.model_copy(update={"below": below})})


def input_axes(graph: Graph) -> set[str]:
    """Return the axes of the graph's inputs."""
    return {
        one.axis for given in graph.inputs for one in given.type.shape if isinstance(one, AxisSize)
    }


def is_alone(graph: Graph, name: str) -> bool:
    """Return whether the axis is no size of a weight, and stands first in inputs only."""
    for given in graph.inputs:
        places = [n for n, one in enumerate(given.type.shape) if one == AxisSize(axis=name)]
        if places and (given.kind != "input" or places != [0]):
            return False
    return True


def ordered(names: Sequence[str], graph: Graph) -> list[str]:
    """Return the axes of inputs first: others may be expressions over them."""
    of_inputs = input_axes(graph)
    return [n for n in names if n in of_inputs] + [n for n in names if n not in of_inputs]


def expressed(
    order: Sequence[str], values: dict[str, Values], given: set[str], batch: str | None
) -> dict[str, str | None]:
    """Return each axis with its expression, where the others' values give it at every shape.

    What depends on the batch is no axis of an input: with fewer rows its size would change.
    """
    result: dict[str, str | None] = {}
    for name in order:
        above = {one: values[one] for one in result}
        if name in given:
            result[name] = _multiple(values[name], {n: v for n, v in above.items() if n != batch})
        else:
            result[name] = _expression(values[name], above)
    return result


def _multiple(wanted: Values, above: dict[str, Values]) -> str | None:
    for name, vector in above.items():
        factors = {w // v for w, v in zip(wanted, vector, strict=True) if w % v == 0}
        if len(factors) == 1 and all(
            v * min(factors) == w for w, v in zip(wanted, vector, strict=True)
        ):
            return f"{name} * {min(factors)}"
    return None


def _expression(wanted: Values, above: dict[str, Values]) -> str | None:
    multiple = _multiple(wanted, above)
    if multiple is not None:
        return multiple
    for one, other in combinations_with_replacement(above, 2):
        products = tuple(a * b for a, b in zip(above[one], above[other], strict=True))
        factors = {w // p for w, p in zip(wanted, products, strict=True) if w % p == 0}
        if len(factors) == 1 and all(
            p * min(factors) == w for w, p in zip(wanted, products, strict=True)
        ):
            factor = min(factors)
            return f"{one} * {other}" + (f" * {factor}" if factor != 1 else "")
    for name, vector in above.items():
        apart = {w - v for w, v in zip(wanted, vector, strict=True)}
        if len(apart) == 1:
            step = min(apart)
            return f"{name} + {step}" if step > 0 else f"{name} - {-step}"
    for name, vector in above.items():
        parts = {v // w for w, v in zip(wanted, vector, strict=True) if v % w == 0}
        if len(parts) == 1 and all(
            w * min(parts) == v for w, v in zip(wanted, vector, strict=True)
        ):
            return f"{name} // {min(parts)}"
    return None
