"""How many operations the products of a graph take, as an expression and at sizes of its axes."""

from kopt.kernels.expressions import evaluate_expression
from kopt.tools.pytorch.contraction_work import flops_at, flops_of
from kopt.tools.pytorch.graph import (
    AxisSize,
    Drawing,
    Graph,
    GraphInput,
    GraphOutput,
    Node,
    Ref,
    ValueType,
)


def _chain(widths: int) -> Graph:
    """Return products of matrices whose widths are axes: N0 by N1, by N2 and so on."""

    def matrix(rows: int, columns: int) -> ValueType:
        axes = (AxisSize(axis=f"N{rows}"), AxisSize(axis=f"N{columns}"))
        return ValueType(dtype="float32", shape=axes)

    drawn = Drawing(kind="normal")
    weights = [
        GraphInput(name=f"w{n}", kind="parameter", type=matrix(n, n + 1), drawing=drawn, path="")
        for n in range(widths)
    ]
    nodes = [
        Node(
            name=f"p{n}",
            op="aten.mm.default",
            args=(Ref(node=f"p{n - 1}" if n > 1 else "w0"), Ref(node=f"w{n}")),
            kwargs={},
            results=(matrix(0, n + 1),),
            source="",
        )
        for n in range(1, widths)
    ]
    returned = GraphOutput(name="out", value=Ref(node=nodes[-1].name if nodes else "w0"))
    return Graph(torch="", inputs=tuple(weights), nodes=tuple(nodes), outputs=(returned,))


def test_both_say_the_same_of_a_short_chain() -> None:
    graph, axes = _chain(3), {"N0": 5, "N1": 7, "N2": 11, "N3": 13}
    assert flops_of(graph) == "2 * N0 * N2 * N1 + 2 * N0 * N3 * N2"
    assert flops_at(graph, axes) == evaluate_expression(flops_of(graph), axes)
    assert flops_at(graph, axes) == 2 * 5 * (11 * 7 + 13 * 11)


def test_a_sum_that_no_problem_file_may_hold_is_left_out_and_has_its_value() -> None:
    graph = _chain(60)
    assert flops_of(graph) == "0"
    assert flops_at(graph, {f"N{n}": 2 for n in range(61)}) == 59 * 16


def test_a_graph_without_products_has_no_operations() -> None:
    graph = _chain(1)
    assert (flops_of(graph), flops_at(graph, {})) == ("0", 0)
