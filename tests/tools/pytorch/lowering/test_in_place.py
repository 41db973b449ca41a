"""Outputs that are stored where an input was: nobody reads that input after it is overwritten."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pytest

from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.tools.pytorch.emit import emit_candidate
from kopt.tools.pytorch.graph import Argument, Graph, Node, Ref, ValueType
from support.hand_made_graphs import COLUMNS, graph_of, in_place, problem_of, value_type
from support.plain_cuda import PlainCase, PlainLibrary
from support.random_rows import MATRIX, NUMBERS, Array, random_function

pytestmark = pytest.mark.slow  # g++ reads CUDA's headers, 2 s each

X, Y, M = Ref(node="x"), Ref(node="y"), Ref(node="m")
SIZES = {"B": 37, "N": 41}


@dataclass(frozen=True)
class _Trial:
    graph: Graph
    wanted: Callable[[Mapping[str, Array]], dict[str, Array]]
    is_one_kernel: bool = False


def _node(name: str, op: str, *args: Argument, to: ValueType = MATRIX) -> Node:
    return Node(name=name, op=f"aten.{op}", args=args, results=(to,))


def _graph(nodes: list[Node], *outputs: Ref, **places: str) -> Graph:
    inputs = {"x": MATRIX} if "y" in {one.name for one in nodes} else {"x": MATRIX, "y": MATRIX}
    return in_place(graph_of(inputs, nodes, *outputs), **places)


def _mean_of_columns() -> Node:
    return _node("m", "mean.dim", X, (0,), True, to=value_type(1, COLUMNS))


TRIALS = {
    "an_input_is_read_by_a_later_kernel": _Trial(
        _graph(
            [_mean_of_columns(), _node("y", "sub.Tensor", X, M), _node("z", "mul.Tensor", X, 2)],
            Y,
            Ref(node="z"),
            out0="x",
        ),
        lambda given: {"x": given["x"] - given["x"].mean(0), "out1": given["x"] * 2},
    ),
    "elements_change_places": _Trial(
        _graph([_node("y", "flip.default", X, (1,))], Y, out0="x"),
        lambda given: {"x": given["x"][:, ::-1]},
    ),
    "a_row_reads_the_first_row": _Trial(
        _graph(
            [
                _node("m", "slice.Tensor", X, 0, 0, 1, to=value_type(1, COLUMNS)),
                _node("y", "add.Tensor", X, M),
            ],
            Y,
            out0="x",
        ),
        lambda given: {"x": given["x"] + given["x"][:1]},
    ),
    "two_inputs_change_places": _Trial(
        _graph([], Y, X, out0="x", out1="y"),
        lambda given: {"x": given["y"], "y": given["x"]},
    ),
    "two_inputs_change_places_after_a_reduction_of_columns": _Trial(
        _graph(
            [_mean_of_columns(), _node("z", "add.Tensor", Y, M)],
            Ref(node="z"),
            X,
            out0="x",
            out1="y",
        ),
        lambda given: {"x": given["y"] + given["x"].mean(0), "y": given["x"]},
    ),
    "one_result_takes_the_place_of_two": _Trial(
        _graph(
            [_mean_of_columns(), _node("z", "add.Tensor", Y, M)],
            Ref(node="z"),
            Ref(node="z"),
            out0="x",
            out1="y",
        ),
        lambda given: {
            "x": given["y"] + given["x"].mean(0),
            "y": given["y"] + given["x"].mean(0),
        },
    ),
    "a_row_is_normed_where_it_stands": _Trial(
        _graph(
            [
                _node("m", "mean.dim", X, (1,), True, to=NUMBERS),
                _node("z", "sub.Tensor", X, M),
            ],
            Ref(node="z"),
            out0="x",
        ),
        lambda given: {"x": given["x"] - given["x"].mean(1, keepdims=True)},
        is_one_kernel=True,
    ),
}


@pytest.mark.parametrize("name", TRIALS)
def test_what_is_stored_in_place_is_computed_from_what_stood_there(
    name: str, tmp_path: Path
) -> None:
    trial = TRIALS[name]
    problem = problem_of(trial.graph, SIZES)
    source = emit_candidate(problem, trial.graph)
    assert (source.count("kernel: ") == 1) is trial.is_one_kernel
    case = PlainCase(problem, problem.workloads[0], source, {})
    rng = np.random.default_rng(3)
    names = [one.name for one in trial.graph.inputs]
    inputs = {one: rng.standard_normal(tuple(SIZES.values()), np.float32) for one in names}
    given = PlainLibrary([case], tmp_path).run(0, inputs)
    for output, value in trial.wanted(inputs).items():
        np.testing.assert_allclose(given[output], value, rtol=1e-5, atol=1e-5)


def test_random_functions_of_rows_are_made_where_the_rows_stand(tmp_path: Path) -> None:
    rng = Random(5)
    functions = [random_function(rng, reduces=True, overwrites=True) for _ in range(12)]
    cases: list[PlainCase] = []
    for one in functions:
        problem = problem_of(one.graph, SIZES)
        source = emit_candidate(problem, one.graph)
        assert source.count("kernel: ") == 1, source
        case = Case(problem, problem.workloads[0], Candidate(source))
        cases.append(PlainCase(problem, case.workload, source, rng.choice(case.choices)))
    library = PlainLibrary(cases, tmp_path)
    for place, one in enumerate(functions):
        inputs = one.inputs(SIZES, np.random.default_rng(place))
        assert one.wrong(inputs, library.run(place, inputs)) == [], cases[place].source
