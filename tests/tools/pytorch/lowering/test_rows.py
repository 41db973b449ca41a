"""Functions that are made row by row become one kernel, right for random graphs and schedules."""

from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pytest

from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.tools.pytorch.emit import emit_candidate
from kopt.tools.pytorch.graph import Argument, Graph, Node, Ref, ValueType
from kopt.tools.pytorch.lowering.row_schedule import RowSizes, Schedule, tried_values
from support.hand_made_graphs import ROWS, graph_of, problem_of, value_type
from support.plain_cuda import PlainCase, PlainLibrary
from support.random_rows import MATRIX, NUMBERS, VECTOR, RowFunction, random_function

WORKLOADS = ({"B": 5, "N": 96}, {"B": 2, "N": 37}, {"B": 3, "N": 520})
LONG_ROWS = ({"B": 131, "N": 1027}, {"B": 5, "N": 1032}, {"B": 2, "N": 1024})
"""A function without reductions is made by rows where they are many and long."""
PLAIN_CPP = (
    *("split_rows", "hoisted_factors", "occupancy_bound", "fast_reciprocal"),
    *("early_stores", "products_before_barrier"),
)
"""Techniques whose kernels call no function of kopt's headers."""
TRIALS = 40


@dataclass(frozen=True)
class _Trial:
    function: RowFunction
    techniques: frozenset[str]
    cases: tuple[PlainCase, ...]


def _trial(rng: Random) -> _Trial:
    """Return a function with the kernel of a set of techniques, at drawn values of its header."""
    reduces = rng.random() < 0.7
    function = random_function(rng, reduces=reduces)
    techniques = frozenset(one for one in PLAIN_CPP if rng.random() < 0.5)
    problem = problem_of(function.graph, *(WORKLOADS if reduces else LONG_ROWS))
    source = emit_candidate(problem, function.graph, Schedule(techniques))
    assert source.count("kernel: ") == 1 and "ROW threads" in source, source
    cases = [Case(problem, one, Candidate(source)) for one in problem.workloads]
    drawn = [(case.workload, rng.choice(case.choices)) for case in cases]
    return _Trial(
        function, techniques, tuple(PlainCase(problem, one, source, tune) for one, tune in drawn)
    )


def _differences(trials: list[_Trial], folder: Path) -> list[str]:
    pairs = [(trial, case) for trial in trials for case in trial.cases]
    library = PlainLibrary([case for _, case in pairs], folder)
    numbers = np.random.default_rng(7)
    found: list[str] = []
    for place, (trial, case) in enumerate(pairs):
        inputs = trial.function.inputs(case.workload.axes, numbers)
        wrong = trial.function.wrong(inputs, library.run(place, inputs))
        what = f"{sorted(trial.techniques)} {case.workload.axes} {case.tune}:\n{case.source}"
        found += [f"{one} {what}" for one in wrong]
    return found


@pytest.mark.slow  # g++ reads CUDA's headers
def test_random_functions_of_rows_are_right_under_random_techniques(tmp_path: Path) -> None:
    rng = Random(11)
    trials = [_trial(rng) for _ in range(TRIALS)]
    used = {name for trial in trials for name in trial.techniques}
    assert used == set(PLAIN_CPP)
    assert _differences(trials, tmp_path) == []


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(20))
def test_many_random_functions_of_rows_are_right(seed: int, tmp_path: Path) -> None:
    rng = Random(f"nightly {seed}")
    assert _differences([_trial(rng) for _ in range(100)], tmp_path) == []


def _node(name: str, op: str, *args: Argument, to: ValueType = MATRIX) -> Node:
    return Node(name=name, op=f"aten.{op}", args=args, results=(to,))


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


@pytest.mark.parametrize(("technique", "reduces"), [("cluster_sums", True), ("split_rows", False)])
def test_the_first_values_of_shared_rows_leave_no_block_without_a_part(
    technique: str, reduces: bool
) -> None:
    schedule = Schedule(frozenset({technique})).fitting(reduces, 512)
    assert schedule.is_split and not schedule.fitting(reduces, 511).is_split
    for elements in range(512, 9000):
        tried = tried_values(RowSizes(elements, reduces, False, False), schedule)
        assert (tried["SPLIT"][0] - 1) * tried["ROW"][0] < -(-elements // 8), elements


def test_a_number_of_a_row_is_read_once_at_the_start_unless_it_is_under_a_condition() -> None:
    matrix, numbers = value_type(130, 1024), value_type(130, 1)
    product = Node(
        name="y", op="aten.mul.Tensor", args=(Ref(node="x"), Ref(node="n")), results=(matrix,)
    )
    plain = graph_of({"x": matrix, "n": numbers}, [product], Ref(node="y"))
    source = emit_candidate(problem_of(plain, {"B": 1}), plain)
    start, loop = source.split("for (int v = 0; v < VEC; ++v)")
    assert start.count("n_data[row]") == 1 and "n_data" not in loop
    padded = Node(
        name="n",
        op="aten.constant_pad_nd.default",
        args=(Ref(node="m"), (0, 0, 0, 1), 1.0),
        results=(numbers,),
    )
    guarded = graph_of({"x": matrix, "m": value_type(129, 1)}, [padded, product], Ref(node="y"))
    source = emit_candidate(problem_of(guarded, {"B": 1}), guarded)
    start, loop = source.split("for (int v = 0; v < VEC; ++v)")
    assert "m_data[" not in start and loop.count("m_data[") == 1
