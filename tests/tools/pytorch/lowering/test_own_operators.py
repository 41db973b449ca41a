"""kopt's own operators in kernels: packed codes, scales in tiles, rows that stay as they are."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
import pytest

from kopt.config.errors import UnsupportedOperator
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.layouts import to_sf_128x4
from kopt.kernels.problem import Problem
from kopt.kernels.rounding import pack_e2m1, round_to_e2m1, round_to_e4m3
from kopt.tools.pytorch.emit import emit_candidate
from kopt.tools.pytorch.graph import Argument, AxisSize, Graph, Node, Ref, Size, ValueType
from kopt.tools.pytorch.lowering.row_schedule import PLAIN, Schedule
from support.hand_made_graphs import COLUMNS, ROWS, graph_of, problem_of, value_type
from support.plain_cuda import PlainCase, PlainLibrary
from support.random_rows import Array

X = Ref(node="x")
EXPERTS = AxisSize(axis="E")
ONE_KERNEL = "k1_rows"
POISON = np.uint8(0xA5)


def _node(name: str, op: str, *args: Argument, to: ValueType) -> Node:
    return Node(name=name, op=op, args=args, results=(to,))


def _packed(of: str, *shape: Size) -> Node:
    return _node(
        "c", "kopt.packed_e2m1.default", Ref(node=of), to=value_type(*shape, dtype="uint8")
    )


def _codes(columns: int, *, more: int = 0, by_column: bool = False) -> Graph:
    """Return the codes of 3 x, of x without `more` first columns, or less its columns' means."""
    matrix = value_type(ROWS, columns)
    nodes = [_node("y", "aten.mul.Tensor", X, 3.0, to=matrix)]
    if more:
        nodes = [_node("y", "aten.slice.Tensor", X, 1, more, 1 << 62, to=matrix)]
    if by_column:
        mean = _node("m", "aten.mean.dim", X, (0,), True, to=value_type(1, columns))
        nodes = [mean, _node("y", "aten.sub.Tensor", X, Ref(node="m"), to=matrix)]
    given = value_type(ROWS, columns + more)
    return graph_of({"x": given}, [*nodes, _packed("y", ROWS, columns // 2)], Ref(node="c"))


def _scaled(*outer: Size, groups: int, is_masked: bool = False) -> Graph:
    """Return codes of x over the largest of its group of 16, and the largest ones as e4m3."""
    row, grouped = (*outer, 16 * groups), (*outer, groups, 16)
    kept, column = value_type(*outer, groups), value_type(*outer, groups, 1)
    nodes = [
        _node("g", "aten.view.default", X, grouped, to=value_type(*grouped)),
        _node("a", "aten.abs.default", Ref(node="g"), to=value_type(*grouped)),
        _node("m", "aten.amax.default", Ref(node="a"), (-1,), to=kept),
        _node("u", "aten.unsqueeze.default", Ref(node="m"), len(outer) + 1, to=column),
        _node("d", "aten.div.Tensor", Ref(node="g"), Ref(node="u"), to=value_type(*grouped)),
        _node("y", "aten.view.default", Ref(node="d"), row, to=value_type(*row)),
        _packed("y", *outer, 8 * groups),
        Node(
            name="s",
            op="aten._to_copy.default",
            args=(Ref(node="m"),),
            kwargs={"dtype": "float8_e4m3fn"},
            results=(value_type(*outer, groups, dtype="float8_e4m3fn"),),
        ),
    ]
    inputs, outputs = {"x": value_type(*row)}, ["c", "s"]
    if is_masked:
        inputs["k"] = value_type(*outer, 1, dtype="bool")
        places = [one for one in nodes if one.name in outputs]
        nodes += [
            _node(
                f"{one.name}k",
                "kopt.written_where.default",
                Ref(node=one.name),
                Ref(node="k"),
                to=one.results[0] or kept,
            )
            for one in places
        ]
        outputs = ["ck", "sk"]
    return graph_of(inputs, nodes, *(Ref(node=one) for one in outputs))


def _in_tiles(problem: Problem, name: str = "out1") -> Problem:
    tensors = [
        one.model_copy(update={"layout": "sf_128x4"}) if one.name == name else one
        for one in problem.tensors
    ]
    return problem.model_copy(update={"tensors": tuple(tensors)})


def _bits(values: Array) -> Array:
    return pack_e2m1(round_to_e2m1(values))


def _wanted_scaled(x: Array) -> tuple[Array, Array]:
    groups = x.reshape(*x.shape[:-1], -1, 16)
    largest = np.abs(groups).max(-1)
    # As in float32: a quotient of two of them is nearest to the exact one.
    quotients = (groups / largest[..., None]).astype(np.float64)
    return _bits(quotients.reshape(x.shape)), round_to_e4m3(largest.astype(np.float64))


@dataclass(frozen=True)
class _Trial:
    graph: Graph
    axes: Mapping[str, int]
    wanted: Callable[[Mapping[str, Array]], tuple[Array, ...]]
    is_in_tiles: bool = False
    is_rows: bool = True
    schedule: Schedule = PLAIN

    @property
    def problem(self) -> Problem:
        problem = problem_of(self.graph, self.axes)
        return _in_tiles(problem) if self.is_in_tiles else problem


def _of_product(given: Mapping[str, Array]) -> tuple[Array, ...]:
    return (_bits((given["x"] * np.float32(3)).astype(np.float64)),)


def _of_groups(given: Mapping[str, Array]) -> tuple[Array, ...]:
    return _wanted_scaled(given["x"])


def _of_tiles(given: Mapping[str, Array]) -> tuple[Array, ...]:
    codes, scales = _wanted_scaled(given["x"])
    return codes, to_sf_128x4(scales.view(np.uint8), POISON)


def _of_masked(given: Mapping[str, Array]) -> tuple[Array, ...]:
    codes, scales = _wanted_scaled(given["x"])
    kept = given["k"]
    bits = np.where(kept, scales.view(np.uint8), POISON)
    return np.where(kept, codes, POISON), to_sf_128x4(bits, POISON)


TRIALS = {
    **{
        f"codes_{columns}": _Trial(_codes(columns), {"B": 130}, _of_product, is_rows=columns != 34)
        for columns in (6, 34, 1030, 2064)  # 34: few rows, all of them one of 4420 elements
    },
    "split": _Trial(
        _codes(2064), {"B": 9}, _of_product, schedule=Schedule(frozenset({"split_rows"}))
    ),
    "odd_packs": _Trial(
        _codes(1030, more=1),
        {"B": 130},
        lambda given: (_bits(given["x"][:, 1:].astype(np.float64)),),
        is_rows=False,
    ),
    "by_column": _Trial(
        _codes(64, by_column=True),
        {"B": 64},
        lambda given: (_bits((given["x"] - given["x"].mean(0)).astype(np.float64)),),
        is_rows=False,
    ),
    "groups": _Trial(_scaled(ROWS, groups=70), {"B": 130}, _of_groups),
    "tiles": _Trial(_scaled(ROWS, groups=71), {"B": 131}, _of_tiles, is_in_tiles=True),
    "batches": _Trial(
        _scaled(EXPERTS, ROWS, groups=65), {"E": 3, "B": 130}, _of_tiles, is_in_tiles=True
    ),
    "masked": _Trial(
        _scaled(EXPERTS, ROWS, groups=66, is_masked=True),
        {"E": 3, "B": 45},
        _of_masked,
        is_in_tiles=True,
    ),
}


def _inputs(problem: Problem, axes: Mapping[str, int]) -> dict[str, Array]:
    """Return sixteenths, whose sums and products are exact: ties among them."""
    numbers, found = np.random.default_rng(7), dict[str, Array]()
    for tensor in problem.tensors:
        if tensor.role == "in":
            shape = tuple({**problem.workloads[0].axes, **axes}[one] for one in tensor.shape)
            whole = numbers.integers(-40, 41, shape)
            made = whole > 0 if tensor.dtype == "bool" else whole / 16
            found[tensor.name] = made.astype(numpy_dtype(tensor.dtype))
    return found


@pytest.mark.slow  # g++ reads CUDA's headers
def test_codes_and_scales_are_right_at_odd_sizes_and_nothing_else_is_written(
    tmp_path: Path,
) -> None:
    rng, cases = Random(3), list[PlainCase]()
    for name, trial in TRIALS.items():
        source = emit_candidate(trial.problem, trial.graph, trial.schedule)
        assert (ONE_KERNEL in source) == trial.is_rows, name
        (workload,) = trial.problem.workloads
        choices = Case(trial.problem, workload, Candidate(source)).choices
        cases.append(PlainCase(trial.problem, workload, source, rng.choice(choices)))
    library = PlainLibrary(cases, tmp_path)
    for place, (name, trial) in enumerate(TRIALS.items()):
        given = _inputs(trial.problem, trial.axes)
        made = library.run(place, given)
        for number, wanted in enumerate(trial.wanted(given)):
            bits = made[f"out{number}"].view(np.uint8).reshape(wanted.shape)
            what = f"{name} out{number} {cases[place].tune}:\n{cases[place].source}"
            assert np.array_equal(bits, wanted.view(np.uint8)), what


@pytest.mark.parametrize(
    ("graph", "problem"),
    [
        pytest.param(
            _codes(64), _in_tiles(problem_of(_codes(64), {"B": 130}), "out0"), id="codes_in_tiles"
        ),
        pytest.param(
            _scaled(ROWS, groups=1 << 20),
            _in_tiles(problem_of(_scaled(ROWS, groups=1 << 20), {"B": 4096})),
            id="more_than_32_bits",
        ),
    ],
)
def test_what_no_row_writes_right_is_refused(graph: Graph, problem: Problem) -> None:
    with pytest.raises(UnsupportedOperator, match="lies in tiles or is written in part"):
        emit_candidate(problem, graph)


def test_rows_that_are_reduced_are_not_left_out() -> None:
    matrix, number = value_type(ROWS, COLUMNS), value_type(ROWS, 1)
    nodes = [
        _node("s", "aten._softmax.default", X, -1, False, to=matrix),
        _node("o", "kopt.written_where.default", Ref(node="s"), Ref(node="k"), to=matrix),
    ]
    inputs = {"x": matrix, "k": value_type(ROWS, 1, dtype="bool")}
    graph = graph_of(inputs, nodes, Ref(node="o"))
    assert number.shape == inputs["k"].shape
    with pytest.raises(UnsupportedOperator, match="out0 lies in tiles or is written in part"):
        emit_candidate(problem_of(graph, {"B": 130, "N": 1024}), graph)
