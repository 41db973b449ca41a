"""A reference in float64 as a graph in float32: casts to what a value is already are left out."""

from kopt.tools.pytorch.graph import Argument, Node, Ref
from kopt.tools.pytorch.importing.single_precision import in_single_precision
from support.hand_made_graphs import COLUMNS, ROWS, graph_of, value_type


def _cast(name: str, of: str, dtype: str) -> Node:
    kwargs: dict[str, Argument] = {"dtype": dtype}
    results = (value_type(ROWS, COLUMNS, dtype=dtype),)
    return Node(
        name=name, op="aten._to_copy.default", args=(Ref(node=of),), kwargs=kwargs, results=results
    )


def test_float64_becomes_float32_and_narrow_casts_stay() -> None:
    wide = value_type(ROWS, COLUMNS, dtype="float64")
    nodes = [
        _cast("single", "x", "float32"),
        _cast("double", "single", "float64"),
        Node(name="y", op="aten.abs.default", args=(Ref(node="double"),), results=(wide,)),
        _cast("narrow", "y", "bfloat16"),
        _cast("again", "narrow", "float64"),
        _cast("last", "again", "float32"),
    ]
    graph = graph_of(
        {"x": value_type(ROWS, COLUMNS, dtype="bfloat16")}, nodes, Ref(node="y"), Ref(node="last")
    )
    made = in_single_precision(graph)
    assert [one.name for one in made.nodes] == ["single", "y", "narrow", "again"]
    assert made.node("y").args == (Ref(node="single"),)
    assert made.node("again").kwargs == {"dtype": "float32"}
    dtypes = [made.type_of(one.value).dtype for one in made.outputs]
    assert dtypes == ["float32", "float32"]
    assert made.outputs[1].value == Ref(node="again")
