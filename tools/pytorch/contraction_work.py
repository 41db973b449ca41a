"""The arithmetic of a graph: operations of its contractions, as expressions over the axes."""

from collections.abc import Mapping

from kopt.kernels.expressions import ExpressionError, evaluate_expression, expression_names

from .graph import Argument, AxisSize, Graph, Node, Ref, Size
from .operators import CONTRACTIONS, base_name


def flops_of(graph: Graph) -> str:
    """Return the floating-point operations of the contractions of `graph` as an expression.

    It is "0" where there are none, and where the sum is longer than an expression of problem.yaml
    may be, as that of a network of dozens of different convolutions is: `flops_at` has its value.
    """
    terms: dict[str, int] = {}
    for node in graph.nodes:
        found = contraction_flops(graph, node)
        if found is not None:
            terms[found] = terms.get(found, 0) + 1
    text = " + ".join(f"{count} * {one}" if count > 1 else one for one, count in terms.items())
    try:
        expression_names(text or "0")
    except ExpressionError:
        return "0"
    return text or "0"


def flops_at(graph: Graph, axes: Mapping[str, int]) -> int:
    """Return the floating-point operations of the contractions of `graph` at sizes of its axes."""
    found = (contraction_flops(graph, node) for node in graph.nodes)
    return sum(evaluate_expression(one, axes) for one in found if one is not None)


def contraction_flops(graph: Graph, node: Node) -> str | None:
    """Return the operations of one contraction: two for each product; None for other nodes."""
    name = base_name(node.op)
    result = node.results[0]
    if name not in CONTRACTIONS or result is None:
        return None
    sizes: list[Size] = [2, *result.shape]
    if name == "convolution":
        given, weight = (_shape(graph, one) for one in node.args[:2])
        is_transposed = bool(node.args[6]) if len(node.args) > 6 else False
        # Each input of a transposed convolution goes to each place of its kernel.
        sizes = [2, *given] if is_transposed else sizes
        sizes += weight[1:]
    else:
        first = node.args[1] if name in ("addmm", "baddbmm") else node.args[0]
        sizes.append(_shape(graph, first)[-1])
    return " * ".join(one.axis if isinstance(one, AxisSize) else str(one) for one in sizes)


def node_cost(graph: Graph, node: Node, axes: dict[str, int]) -> float:
    """Return what a node costs at one workload, in elements: read, written, and multiplied.

    A product counts a tenth of a moved element: a GPU does 20 fp32 operations for each byte.
    """
    kinds = [graph.type_of(one) for one in node.args if isinstance(one, Ref)]
    moved = sum(_count(one.shape, axes) for one in (*kinds, *filter(None, node.results)))
    flops = contraction_flops(graph, node)
    return moved + (0.05 * evaluate_expression(flops, axes) if flops else 0.0)


def _count(shape: tuple[Size, ...], axes: dict[str, int]) -> int:
    count = 1
    for one in shape:
        count *= axes[one.axis] if isinstance(one, AxisSize) else one
    return count


def _shape(graph: Graph, argument: Argument) -> tuple[Size, ...]:
    return graph.type_of(argument).shape if isinstance(argument, Ref) else ()
