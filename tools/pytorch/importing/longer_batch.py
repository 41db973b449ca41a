"""Rows told apart from sizes that happen to be the same, by inputs with more rows.

A product of square matrices has one integer for all its sizes: no other value of it makes the
batch a size of its own, as shrinking.py does. The graph for more rows than the user's code makes
shows which sizes are theirs.
"""

from collections.abc import Callable, Sequence
from typing import Any

from kopt.config.errors import ToolError
from kopt.tools.pytorch.graph import Graph, Size
from kopt.tools.pytorch.torch_library import load_torch

from .exporting import export_module
from .sizes_as_axes import Measured, SizedGraph, with_axes

_LONGER = "longer"
"""What the graph is called beside those of the workloads."""


def told_apart(
    make: Callable[[], tuple[Any, Sequence[Any]]], measured: Sequence[Measured], batch: int | None
) -> SizedGraph | None:
    """Return the graph with an axis for its rows; None where more rows make another function.

    Args:
        make: Returns the module and its inputs at the shape of the first graph.
        measured: The graph at each workload.
        batch: First dimension of the first input in the first of them.
    """
    if batch is None:
        return None
    module, inputs = make()
    longer = _at_longer_batch(module, inputs, measured[0].graph)
    if longer is None:
        return None
    try:
        sized = with_axes([*measured, Measured(workload=_LONGER, graph=longer)], batch)
    except ToolError:  # a number that is no size depends on the rows
        return None
    if sized.batch is None:
        return None
    workloads = {name: axes for name, axes in sized.workloads.items() if name != _LONGER}
    return sized.model_copy(update={"workloads": workloads})


def _at_longer_batch(module: Any, inputs: Sequence[Any], small: Graph) -> Graph | None:
    """Return the graph for more rows.

    All inputs that are as long as the first get more rows, or else the first alone.
    """
    lengths = [_length(one) for one in inputs]
    if not lengths or lengths[0] is None:
        return None
    longer = _unused_size(small, lengths[0])
    alike = tuple(place for place, length in enumerate(lengths) if length == lengths[0])
    for chosen in dict.fromkeys((alike, (0,))):
        given = tuple(
            one.new_zeros((longer, *one.shape[1:])) if place in chosen else one
            for place, one in enumerate(inputs)
        )
        try:
            graph = export_module(module, given, ()).graph
        except ToolError:  # these sizes do not fit together
            continue
        is_same = [node.op for node in graph.nodes] == [node.op for node in small.nodes]
        # Rows against rows, as in a @ b.T of squares, are not rows: longer inputs show it twice.
        if is_same and all(shape.count(longer) <= 1 for shape in _output_shapes(graph)):
            both = zip(graph.inputs, small.inputs, strict=True)
            drawn = tuple(one.model_copy(update={"drawing": own.drawing}) for one, own in both)
            return graph.model_copy(update={"inputs": drawn})
    return None


def _length(value: Any) -> int | None:
    is_batched = isinstance(value, load_torch().Tensor) and value.ndim
    return int(value.shape[0]) if is_batched else None


def _output_shapes(graph: Graph) -> list[tuple[Size, ...]]:
    return [graph.type_of(one.value).shape for one in graph.outputs]


def _unused_size(graph: Graph, above: int) -> int:
    """Return the least size greater than `above` that no tensor of the graph has."""
    types = [one.type for one in graph.inputs]
    types += [one for node in graph.nodes for one in node.results if one is not None]
    used = {size for one in types for size in one.shape if isinstance(size, int)}
    size = above + 1
    while size in used:
        size += 1
    return size
