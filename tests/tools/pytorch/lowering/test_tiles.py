"""Pointwise functions of several shapes: packs of neighbours, one launch or one an output."""

from itertools import pairwise
from pathlib import Path
from random import Random

import numpy as np
import pytest

from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.tools.pytorch.emit import emit_candidate
from kopt.tools.pytorch.graph import Argument, AxisSize, Graph, Node, Ref, ValueType
from kopt.tools.pytorch.lowering.row_schedule import Schedule
from support.hand_made_graphs import COLUMNS, ROWS, graph_of, in_place, problem_of, value_type
from support.plain_cuda import PlainCase, PlainLibrary
from support.random_tiles import TileFunction, random_tiles

WORKLOADS = ({"B": 5, "N": 96, "H": 3}, {"B": 2, "N": 37, "H": 1}, {"B": 3, "N": 520, "H": 4})
PLAIN_CPP = ("roles_by_block", "occupancy_bound", "fast_reciprocal")
"""Techniques whose kernels call no function of kopt's headers."""
TRIALS = 30
MATRIX, TURNED = value_type(ROWS, COLUMNS), value_type(COLUMNS, ROWS)
FLAT = value_type(COLUMNS)


def _cases(function: TileFunction, rng: Random) -> list[PlainCase]:
    """Return the kernels of random techniques at drawn values of their header."""
    techniques = frozenset(one for one in PLAIN_CPP if rng.random() < 0.5)
    problem = problem_of(function.graph, *WORKLOADS)
    source = emit_candidate(problem, function.graph, Schedule(techniques))
    assert "_tiles(" in source, source
    assert (source.count("kernel: ") == 1) == ("roles_by_block" in techniques)
    cases = [Case(problem, one, Candidate(source)) for one in problem.workloads]
    return [PlainCase(problem, one.workload, source, rng.choice(one.choices)) for one in cases]


def _differences(seed: str, count: int, folder: Path) -> list[str]:
    rng = Random(seed)
    functions = [random_tiles(rng) for _ in range(count)]
    pairs = [(function, case) for function in functions for case in _cases(function, rng)]
    library = PlainLibrary([case for _, case in pairs], folder)
    numbers = np.random.default_rng(7)
    found: list[str] = []
    for place, (function, case) in enumerate(pairs):
        inputs = function.inputs(case.workload.axes, numbers)
        wrong = function.wrong(inputs, library.run(place, inputs))
        found += [f"{one} {case.workload.axes} {case.tune}:\n{case.source}" for one in wrong]
    return found


@pytest.mark.slow  # g++ reads CUDA's headers
def test_random_functions_of_tiles_are_right_under_random_techniques(tmp_path: Path) -> None:
    assert _differences("tiles", TRIALS, tmp_path) == []


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(10))
def test_many_random_functions_of_tiles_are_right(seed: int, tmp_path: Path) -> None:
    assert _differences(f"nightly {seed}", 100, tmp_path) == []


def _node(name: str, op: str, *args: Argument, to: ValueType = MATRIX) -> Node:
    return Node(name=name, op=f"aten.{op}", args=args, results=(to,))


def _two_outputs(*nodes: Node) -> Graph:
    """Return a graph with those nodes, whose last is an output, and with relu of a vector."""
    other = _node("b", "relu.default", Ref(node="v"), to=FLAT)
    inputs = {"x": MATRIX, "v": FLAT}
    return graph_of(inputs, [*nodes, other], Ref(node=nodes[-1].name), Ref(node="b"))


def _emitted(graph: Graph, *techniques: str) -> str:
    problem = problem_of(graph, *({"B": 5, "N": 96}, {"B": 900, "N": 32}))
    return emit_candidate(problem, graph, Schedule(frozenset(techniques)))


def test_outputs_of_different_shapes_share_a_launch_where_that_is_asked_for() -> None:
    graph = _two_outputs(_node("y", "neg.default", Ref(node="x")))
    apart, joined = _emitted(graph), _emitted(graph, "roles_by_block")
    assert apart.count("kernel: ") == 2 and "end1" not in apart
    assert joined.count("kernel: ") == 1 and "int(blockIdx.x) < end1" in joined


def test_elements_that_are_no_neighbours_are_not_read_by_tiles() -> None:
    turned = _node("t", "permute.default", Ref(node="x"), (1, 0), to=TURNED)
    graph = _two_outputs(turned, _node("y", "neg.default", Ref(node="t"), to=TURNED))
    assert "_tiles(" not in _emitted(graph)


def test_what_is_written_in_place_is_not_made_by_tiles() -> None:
    graph = in_place(_two_outputs(_node("y", "neg.default", Ref(node="x"))), out0="x")
    assert "_tiles(" not in _emitted(graph)


def test_a_reduction_is_not_made_by_tiles() -> None:
    graph = _two_outputs(_node("y", "_softmax.default", Ref(node="x"), 0, False))
    assert "_tiles(" not in _emitted(graph)


def test_an_operand_that_is_broadcast_at_some_workloads_only_is_not_cut_into_parts() -> None:
    wide, some = AxisSize(axis="M"), AxisSize(axis="K")
    nodes = [
        _node("c", "cat.default", (Ref(node="x"), Ref(node="y")), 1, to=value_type(ROWS, wide)),
        _node("o", "mul.Tensor", Ref(node="c"), Ref(node="s"), to=value_type(ROWS, wide)),
        _node("b", "relu.default", Ref(node="v"), to=FLAT),
    ]
    inputs = {"x": MATRIX, "y": MATRIX, "s": value_type(ROWS, some), "v": FLAT}
    graph = graph_of(inputs, nodes, Ref(node="o"), Ref(node="b"))
    workloads = {"B": 5, "N": 8, "M": 16, "K": 16}, {"B": 3, "N": 4, "M": 8, "K": 1}
    source = emit_candidate(problem_of(graph, *workloads), graph)
    assert "_tiles(" not in source and "KOPT_K == 1" in source


def test_what_every_row_reads_stays_in_the_caches() -> None:
    product = _node("y", "mul.Tensor", Ref(node="x"), Ref(node="v"))
    source = _emitted(_two_outputs(product), "streaming_access")
    assert "op::read_streaming<VEC>(x_data + first)" in source
    assert "op::read_pack<VEC>(v_data + (first % KOPT_N))" in source


@pytest.mark.parametrize(
    ("op", "operands", "count"), [("neg.default", 1, 400), ("mul.Tensor", 2, 40)]
)
def test_long_expressions_are_written_by_operator(op: str, operands: int, count: int) -> None:
    names = ["x", *(f"c{number}" for number in range(count))]
    nodes = [_node(name, op, *[Ref(node=before)] * operands) for before, name in pairwise(names)]
    source = _emitted(_two_outputs(*nodes))
    assert "_tiles(" not in source and source.count("kernel: ") > 2


def test_more_outputs_than_a_grid_has_room_for_keep_a_launch_each() -> None:
    shapes = [value_type(ROWS, width) for width in range(1, 21)]
    inputs = {f"x{place}": shape for place, shape in enumerate(shapes)}
    nodes = [
        _node(f"y{place}", "neg.default", Ref(node=f"x{place}"), to=shape)
        for place, shape in enumerate(shapes)
    ]
    graph = graph_of(inputs, nodes, *(Ref(node=one.name) for one in nodes))
    problem = problem_of(graph, {"B": 5}, {"B": 900})
    source = emit_candidate(problem, graph, Schedule(frozenset({"roles_by_block"})))
    case = Case(problem, problem.workloads[0], Candidate(source))
    assert source.count("kernel: ") == len(shapes) and case.choices
