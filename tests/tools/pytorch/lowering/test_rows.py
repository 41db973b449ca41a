"""Functions that are made row by row become one kernel, right for random graphs and schedules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.kernels.problem import Workload
from kopt.tools.pytorch.emit import emit_candidate
from kopt.tools.pytorch.graph import Argument, Graph, Node, Ref, ValueType
from support.hand_made_graphs import COLUMNS, ROWS, graph_of, problem_of, value_type
from support.plain_cuda import PlainCase, PlainLibrary

Array = npt.NDArray[Any]
MATRIX, NUMBERS, VECTOR = value_type(ROWS, COLUMNS), value_type(ROWS, 1), value_type(COLUMNS)
WORKLOADS = ({"B": 5, "N": 96}, {"B": 2, "N": 37}, {"B": 3, "N": 520})
SCHEDULES = ((32, 1), (32, 4), (64, 2), (128, 1))
GRAPHS = 12
_UNARY: dict[str, Callable[[Array], Array]] = {
    "neg.default": np.negative,
    "relu.default": lambda x: np.maximum(x, 0),
    "sigmoid.default": lambda x: 1 / (1 + np.exp(-x)),
    "tanh.default": np.tanh,
    "abs.default": np.abs,
}
_BINARY: dict[str, Callable[[Array, Array], Array]] = {
    "add.Tensor": np.add,
    "mul.Tensor": np.multiply,
    "maximum.default": np.maximum,
}
_REDUCED: dict[str, Callable[[Array], Array]] = {
    "mean.dim": lambda x: x.mean(1, keepdims=True),
    "amax.default": lambda x: x.max(1, keepdims=True),
    "amin.default": lambda x: x.min(1, keepdims=True),
}


@dataclass(frozen=True)
class _Function:
    graph: Graph
    compute: Callable[[dict[str, Array]], list[Array]]


def _node(name: str, op: str, *args: Argument, to: ValueType = MATRIX) -> Node:
    return Node(name=name, op=f"aten.{op}", args=args, results=(to,))


def _random_function(rng: Random) -> _Function:
    """Return a function of a matrix and a vector: steps by element and by row, as they come."""
    inputs = {"x": MATRIX, "w": VECTOR}
    nodes: list[Node] = []
    wide, narrow = ["x"], list[str]()
    steps: list[tuple[str, Callable[..., Array], tuple[str, ...]]] = []
    for number in range(rng.randint(3, 9)):
        name = f"n{number}"
        kind = rng.choice(("unary", "binary", "reduced", "binary")) if number else "reduced"
        if kind == "reduced":
            op, reduced = rng.choice(list(_REDUCED.items()))
            one = rng.choice(wide)
            nodes.append(_node(name, op, Ref(node=one), (1,), True, to=NUMBERS))
            steps.append((name, reduced, (one,)))
            narrow.append(name)
            continue
        one, other = rng.choice(wide), rng.choice([*wide, *narrow, "w"])
        if kind == "unary":
            op, unary = rng.choice(list(_UNARY.items()))
            nodes.append(_node(name, op, Ref(node=one)))
            steps.append((name, unary, (one,)))
        else:
            op, binary = rng.choice(list(_BINARY.items()))
            nodes.append(_node(name, op, Ref(node=one), Ref(node=other)))
            steps.append((name, binary, (one, other)))
        wide.append(name)
    outputs = [wide[-1]] if wide[-1] != "x" else []
    outputs += narrow[-1:]

    def compute(given: dict[str, Array]) -> list[Array]:
        values = {name: array.astype(np.float64) for name, array in given.items()}
        for name, function, arguments in steps:
            values[name] = function(*(values[one] for one in arguments))
        return [values[one] for one in outputs]

    return _Function(graph_of(inputs, nodes, *(Ref(node=one) for one in outputs)), compute)


def _inputs(workload: Workload, rng: np.random.Generator) -> dict[str, Array]:
    rows, columns = workload.axes["B"], workload.axes["N"]
    return {
        "x": rng.standard_normal((rows, columns), np.float32),
        "w": rng.standard_normal(columns, np.float32),
    }


def _differences(functions: Sequence[_Function], folder: Path, rng: Random) -> list[str]:
    cases: list[PlainCase] = []
    for one in functions:
        problem = problem_of(one.graph, *WORKLOADS)
        source = emit_candidate(problem, one.graph)
        assert source.count("kernel: ") == 1, source
        for workload in problem.workloads:
            row, rows = rng.choice(SCHEDULES)
            cases.append(PlainCase(problem, workload, source, {"ROW": row, "ROWS": rows}))
    library = PlainLibrary(cases, folder)
    numbers = np.random.default_rng(7)
    found: list[str] = []
    for place, case in enumerate(cases):
        inputs = _inputs(case.workload, numbers)
        given = library.run(place, inputs)
        wanted = functions[place // len(WORKLOADS)].compute(inputs)
        for output, value in enumerate(wanted):
            if not np.allclose(given[f"out{output}"], value, rtol=1e-4, atol=1e-4):
                found.append(f"{case.workload.axes} {case.tune} out{output}:\n{case.source}")
    return found


def _functions(rng: Random, count: int) -> list[_Function]:
    return [_random_function(rng) for _ in range(count)]


@pytest.mark.slow  # g++ reads CUDA's headers
def test_random_functions_of_rows_are_right_under_random_schedules(tmp_path: Path) -> None:
    rng = Random(11)
    assert _differences(_functions(rng, GRAPHS), tmp_path, rng) == []


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_many_random_functions_of_rows_are_right(seed: int, tmp_path: Path) -> None:
    rng = Random(f"nightly {seed}")
    assert _differences(_functions(rng, 100), tmp_path, rng) == []


def _emitted(graph: Graph) -> str:
    return emit_candidate(problem_of(graph, *WORKLOADS), graph)


def _norm() -> Graph:
    nodes = [
        _node("square", "mul.Tensor", Ref(node="x"), Ref(node="x")),
        _node("mean", "mean.dim", Ref(node="square"), (1,), True, to=NUMBERS),
        _node("scale", "rsqrt.default", Ref(node="mean"), to=NUMBERS),
        _node("normed", "mul.Tensor", Ref(node="x"), Ref(node="scale")),
        _node("y", "mul.Tensor", Ref(node="normed"), Ref(node="w")),
    ]
    return graph_of({"x": MATRIX, "w": VECTOR}, nodes, Ref(node="y"))


def test_a_norm_reads_each_row_once_by_packs_and_keeps_it() -> None:
    source = _emitted(_norm())
    assert source.count("kernel: ") == 1
    assert "x_pack_kept[KEEPS ? ITEMS : 1]" in source
    assert "op::write_pack(out0_data" in source
    assert "x_data[" not in source  # no element is read alone


def test_a_slice_of_a_row_is_read_by_packs_whose_length_divides_where_it_begins() -> None:
    half = value_type(ROWS, 1028)
    nodes = [
        _node("gate", "slice.Tensor", Ref(node="x"), 1, 0, 1028, to=half),
        _node("up", "slice.Tensor", Ref(node="x"), 1, 1028, 2056, to=half),
        _node("y", "mul.Tensor", Ref(node="gate"), Ref(node="up"), to=half),
    ]
    graph = graph_of({"x": value_type(ROWS, 2056)}, nodes, Ref(node="y"))
    source = emit_candidate(problem_of(graph, {"B": 5}, {"B": 900}), graph)
    assert "op::read_pack<VEC>(x_data + row * 2056 + 1028 + first)" in source
    assert "op::pack_length(4, {1028, 2056})" in source


@pytest.mark.parametrize("rows", [{"B": 1, "N": 1 << 20}, {"B": 1 << 20, "N": 8}])
def test_rows_that_leave_most_threads_idle_are_reduced_otherwise(rows: dict[str, int]) -> None:
    total = graph_of(
        {"x": MATRIX},
        [_node("sum", "sum.dim_IntList", Ref(node="x"), (1,), to=value_type(ROWS))],
        Ref(node="sum"),
    )
    assert "ROW threads" not in emit_candidate(problem_of(total, rows), total)


def test_what_is_not_made_row_by_row_takes_a_kernel_for_each_reduction() -> None:
    along_columns = _node("y", "_softmax.default", Ref(node="x"), 0, False)
    graph = graph_of({"x": MATRIX}, [along_columns], Ref(node="y"))
    assert _emitted(graph).count("kernel: ") == 2


def test_a_result_of_another_row_is_no_result_of_this_one() -> None:
    turned = value_type(1, ROWS)
    square = value_type(ROWS, ROWS)
    nodes = [
        _node("sum", "sum.dim_IntList", Ref(node="x"), (1,), True, to=NUMBERS),
        _node("turned", "permute.default", Ref(node="sum"), (1, 0), to=turned),
        _node("y", "add.Tensor", Ref(node="x"), Ref(node="turned"), to=square),
    ]
    graph = graph_of({"x": square}, nodes, Ref(node="y"))
    source = emit_candidate(problem_of(graph, {"B": 8}, {"B": 6}), graph)
    assert source.count("kernel: ") == 2
