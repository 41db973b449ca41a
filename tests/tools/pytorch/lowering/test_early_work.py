"""What is done while a row is being reduced: moved where it may be, and as right as afterwards."""

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from random import Random

import ml_dtypes
import numpy as np
import pytest

from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.tools.pytorch.emit import emit_candidate
from kopt.tools.pytorch.graph import Argument, AxisSize, Graph, Node, Ref, ValueType, refs
from kopt.tools.pytorch.lowering.late_factors import with_late_factors
from kopt.tools.pytorch.lowering.row_schedule import Schedule
from support.hand_made_graphs import COLUMNS, ROWS, graph_of, in_place, problem_of, value_type
from support.plain_cuda import PlainCase, PlainLibrary
from support.random_rows import Array

GROUP, COUNT = 16, 65
WIDE = GROUP * COUNT
MATRIX, NUMBERS = value_type(ROWS, WIDE), value_type(ROWS, 1)
EARLY = ("early_stores", "products_before_barrier")


def _node(name: str, op: str, *args: Argument, to: ValueType, **kwargs: Argument) -> Node:
    read = (Ref(node=one) if isinstance(one, str) else one for one in args)
    return Node(name=name, op=f"aten.{op}", args=tuple(read), kwargs=kwargs, results=(to,))


def _cast(name: str, read: str, dtype: str, to: ValueType = MATRIX) -> Node:
    kind = to.model_copy(update={"dtype": dtype})
    return _node(name, "_to_copy.default", read, to=kind, dtype=dtype)


def _norm() -> list[Node]:
    """Return the nodes from x and r to `y`, their sum divided by its root mean square, times w."""
    return [
        _node("sum", "add.Tensor", "x", "r", to=MATRIX),
        _node("square", "mul.Tensor", "sum", "sum", to=MATRIX),
        _node("mean", "mean.dim", "square", (-1,), True, to=NUMBERS),
        _node("factor", "rsqrt.default", "mean", to=NUMBERS),
        _node("scaled", "mul.Tensor", "sum", "factor", to=MATRIX),
        _node("y", "mul.Tensor", "scaled", "w", to=MATRIX),
    ]


def _inputs() -> dict[str, ValueType]:
    return {"x": MATRIX, "r": MATRIX, "w": value_type(WIDE)}


def _quantised(*, overwrites: bool) -> Graph:
    """Return the norm with the largest magnitude of each group of its rounded results."""
    groups, column = value_type(ROWS, COUNT, GROUP), value_type(ROWS, COUNT)
    nodes = [
        *_norm(),
        _cast("rounded", "y", "bfloat16"),
        _cast("again", "rounded", "float32"),
        _node("g", "view.default", "again", (ROWS, COUNT, GROUP), to=groups),
        _node("a", "abs.default", "g", to=groups),
        _node("m", "amax.default", "a", (-1,), to=column),
        _node("u", "unsqueeze.default", "m", 2, to=value_type(ROWS, COUNT, 1)),
        _node("z", "div.Tensor", "g", "u", to=groups),
        _node("q", "view.default", "z", (ROWS, WIDE), to=MATRIX),
    ]
    graph = graph_of(_inputs(), nodes, *(Ref(node=one) for one in ("rounded", "m", "q", "sum")))
    return in_place(graph, out3="r") if overwrites else graph


def _wanted(given: Mapping[str, Array]) -> list[Array]:
    total = given["x"].astype(np.float64) + given["r"]
    y = total / np.sqrt((total * total).mean(1, keepdims=True)) * given["w"]
    rounded = y.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float64)
    groups = rounded.reshape(len(y), COUNT, GROUP)
    largest = np.abs(groups).max(2)
    return [rounded, largest, (groups / largest[..., None]).reshape(y.shape), total]


@pytest.mark.slow  # g++ reads CUDA's headers
def test_a_quantised_norm_is_right_whatever_is_done_early(tmp_path: Path) -> None:
    rng, numbers = Random(3), np.random.default_rng(3)
    cases: list[PlainCase] = []
    for overwrites, *early in product((False, True), repeat=3):
        techniques = [one for one, wanted in zip(EARLY, early, strict=True) if wanted]
        graph = _quantised(overwrites=overwrites)
        problem = problem_of(graph, {"B": 5, "N": 1})
        source = emit_candidate(problem, graph, Schedule(frozenset(techniques)))
        assert source.count("kernel: ") == 1
        (workload,) = problem.workloads
        choices = Case(problem, workload, Candidate(source)).choices
        longest = min(choices, key=lambda one: one["ROW"])  # more than registers hold
        drawn = (longest, rng.choice(choices))
        cases += [PlainCase(problem, workload, source, one) for one in drawn]
    library = PlainLibrary(cases, tmp_path)
    shapes = {"x": (5, WIDE), "r": (5, WIDE), "w": (WIDE,)}
    for place, case in enumerate(cases):
        given = {
            name: numbers.standard_normal(shape).astype(np.float32)
            for name, shape in shapes.items()
        }
        wanted = _wanted(given)
        made = library.run(place, given)
        last = made["r"] if "r" in made else made["out3"]
        outputs = [made["out0"], made["out1"], made["out2"], last]
        for got, right in zip(outputs, wanted, strict=True):
            assert np.allclose(got.astype(np.float64), right, rtol=2**-7, atol=1e-5), case.source


def _ops(graph: Graph) -> list[str]:
    return [
        " ".join((one.op.split(".")[1], *(ref.node for ref in refs(one)))) for one in graph.nodes
    ]


def test_a_weight_is_multiplied_before_the_factor_of_a_row() -> None:
    moved = with_late_factors(graph_of(_inputs(), _norm(), Ref(node="y")))
    assert _ops(moved)[-2:] == ["mul sum w", "mul y_early factor"]
    assert "scaled" not in {one.name for one in moved.nodes}


def test_a_product_is_called_as_nothing_else_is() -> None:
    inputs = {**_inputs(), "y_early": value_type(WIDE)}
    nodes = [*_norm(), _node("z", "mul.Tensor", "y", "y_early", to=MATRIX)]
    moved = with_late_factors(graph_of(inputs, nodes, Ref(node="z")))
    assert _ops(moved)[-3:] == ["mul sum w", "mul y_early_ y_early", "mul z_early factor"]


def test_the_largest_magnitude_is_taken_before_factor_and_rounding() -> None:
    moved = _ops(with_late_factors(_quantised(overwrites=False)))
    assert "view y_early" in moved
    assert moved.index("abs factor") > moved.index("amax m_early2")
    assert moved[moved.index("mul m_early3 m_early4") :][:3] == [
        "mul m_early3 m_early4",
        "_to_copy m_early5",
        "_to_copy m_early6",
    ]


@pytest.mark.slow  # g++ reads CUDA's headers
def test_rows_of_which_no_pack_is_loaded_are_right_too(tmp_path: Path) -> None:
    nodes = [
        _node("wide", "expand.default", "s", (ROWS, WIDE), to=MATRIX),
        _node("square", "mul.Tensor", "wide", "wide", to=MATRIX),
        _node("total", "sum.dim_IntList", "square", (1,), True, to=NUMBERS),
        _node("y", "neg.default", "wide", to=MATRIX),
    ]
    graph = graph_of({"s": NUMBERS}, nodes, Ref(node="y"), Ref(node="total"))
    problem = problem_of(graph, {"B": 5, "N": 1})
    source = emit_candidate(problem, graph, Schedule(frozenset(EARLY)))
    (workload,) = problem.workloads
    drawn = Random(1).sample(Case(problem, workload, Candidate(source)).choices, 2)
    library = PlainLibrary([PlainCase(problem, workload, source, one) for one in drawn], tmp_path)
    given = np.arange(5, dtype=np.float32)[:, None]
    for place in range(len(drawn)):
        made = library.run(place, {"s": given})
        assert np.array_equal(made["out0"], np.broadcast_to(-given, (5, WIDE)))
        assert np.allclose(made["out1"], given**2 * WIDE, rtol=1e-5)


def test_the_largest_of_all_rows_is_no_factor_s_to_move() -> None:
    nodes = [
        *_norm()[:-1],
        _node("a", "abs.default", "scaled", to=MATRIX),
        _node("m", "amax.default", "a", to=value_type()),
    ]
    graph = graph_of(_inputs(), nodes, Ref(node="m"))
    assert _ops(with_late_factors(graph)) == _ops(graph)


@pytest.mark.parametrize("between", ["int32", "no magnitude", "other rows", "bfloat16 weight"])
def test_nothing_is_moved_where_results_would_be_others(between: str) -> None:
    nodes, last = _norm(), "y"
    inputs = _inputs()
    if between == "bfloat16 weight":  # the user asks for a rounding between the products
        rounded = value_type(ROWS, WIDE, dtype="bfloat16")
        nodes[-1:] = [
            _cast("rounded", "scaled", "bfloat16"),
            _node("y", "mul.Tensor", "rounded", "w", to=rounded),
        ]
        inputs["w"] = value_type(WIDE, dtype="bfloat16")
    else:
        nodes[-2:] = [_node("y", "mul.Tensor", "sum", "factor", to=MATRIX)]
        if between == "int32":
            nodes += [_cast("i", "y", "int32"), _cast("f", "i", "float32")]
            last = "f"
        if between != "no magnitude":
            nodes.append(_node("a", "abs.default", last, to=MATRIX))
            last = "a"
        shape: tuple[int | AxisSize, ...] = (ROWS, WIDE)
        if between == "other rows":
            shape = (WIDE, ROWS)
        nodes.append(_node("g", "view.default", last, shape, to=value_type(*shape)))
        nodes.append(_node("m", "amax.default", "g", (-1,), to=value_type(*shape[:1])))
        last = "m"
    graph = graph_of(inputs, nodes, Ref(node=last))
    assert with_late_factors(graph) == graph


def test_without_reductions_nothing_is_early() -> None:
    matrix = value_type(ROWS, COLUMNS)
    nodes = [_node("y", "abs.default", "x", to=matrix)]
    graph = graph_of({"x": matrix}, nodes, Ref(node="y"))
    problem = problem_of(graph, {"B": 200, "N": 2048})
    plain = emit_candidate(problem, graph)
    assert emit_candidate(problem, graph, Schedule(frozenset(EARLY))) == plain
