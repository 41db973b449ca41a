"""Reductions over groups of neighbours in a row: right whatever their length, dtype and fold."""

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import numpy as np
import pytest

from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.dtypes import numpy_dtype
from kopt.kernels.problem import ScalarSpec
from kopt.tools.pytorch.emit import emit_candidate
from kopt.tools.pytorch.graph import Argument, Graph, Node, Ref, ValueType
from support.hand_made_graphs import COLUMNS, ROWS, graph_of, problem_of, value_type
from support.plain_cuda import PlainCase, PlainLibrary
from support.random_rows import Array

COLUMNS_OF_GROUPS = 1024
LENGTHS = (2, 4, 16, 64, 128)
X = Ref(node="x")


def _node(name: str, op: str, *args: Argument, to: ValueType) -> Node:
    return Node(name=name, op=f"aten.{op}", args=args, results=(to,))


def _in_groups(length: int, dtype: str, *reduced: Node) -> Graph:
    """Return the function that views rows as groups, reduces these and views them as rows."""
    shape = (ROWS, COLUMNS_OF_GROUPS // length, length)
    row, grouped = value_type(ROWS, COLUMNS_OF_GROUPS, dtype=dtype), value_type(*shape)
    nodes = [
        Node(
            name="wide",
            op="aten._to_copy.default",
            args=(X,),
            kwargs={"dtype": "float32"},
            results=(value_type(ROWS, COLUMNS_OF_GROUPS),),
        ),
        _node("g", "view.default", Ref(node="wide"), shape, to=grouped),
        *reduced,
        _node(
            "y",
            "view.default",
            Ref(node="z"),
            (ROWS, COLUMNS_OF_GROUPS),
            to=value_type(ROWS, COLUMNS_OF_GROUPS),
        ),
    ]
    outputs = [Ref(node="y")]
    if any(one.name == "m" for one in reduced):
        outputs.append(Ref(node="m"))
    return graph_of({"x": row}, nodes, *outputs)


def _divided_by_largest(length: int, dtype: str) -> Graph:
    count = COLUMNS_OF_GROUPS // length
    grouped, kept = value_type(ROWS, count, length), value_type(ROWS, count)
    column = value_type(ROWS, count, 1)
    return _in_groups(
        length,
        dtype,
        _node("a", "abs.default", Ref(node="g"), to=grouped),
        _node("m", "amax.default", Ref(node="a"), (-1,), to=kept),
        _node("u", "unsqueeze.default", Ref(node="m"), 2, to=column),
        _node("z", "div.Tensor", Ref(node="g"), Ref(node="u"), to=grouped),
    )


def _softmax(length: int, dtype: str) -> Graph:
    grouped = value_type(ROWS, COLUMNS_OF_GROUPS // length, length)
    return _in_groups(
        length, dtype, _node("z", "_softmax.default", Ref(node="g"), -1, False, to=grouped)
    )


def _variances(length: int, dtype: str) -> Graph:
    count = COLUMNS_OF_GROUPS // length
    grouped, column = value_type(ROWS, count, length), value_type(ROWS, count, 1)
    variance = Node(
        name="s",
        op="aten.var.correction",
        args=(Ref(node="g"), (2,)),
        kwargs={"correction": 0, "keepdim": True},
        results=(column,),
    )
    return _in_groups(
        length, dtype, variance, _node("z", "sub.Tensor", Ref(node="g"), Ref(node="s"), to=grouped)
    )


def _wanted_largest(groups: Array) -> Iterator[Array]:
    largest = np.abs(groups).max(2)
    yield groups / largest[..., None]
    yield largest


def _wanted_softmax(groups: Array) -> Iterator[Array]:
    powers = np.exp(groups - groups.max(2, keepdims=True))
    yield powers / powers.sum(2, keepdims=True)


def _wanted_variances(groups: Array) -> Iterator[Array]:
    yield groups - groups.var(2, keepdims=True)


FUNCTIONS: dict[str, tuple[Callable[[int, str], Graph], Callable[[Array], Iterator[Array]]]] = {
    "largest": (_divided_by_largest, _wanted_largest),
    "softmax": (_softmax, _wanted_softmax),
    "variances": (_variances, _wanted_variances),
}


@pytest.mark.slow  # g++ reads CUDA's headers
def test_groups_of_every_length_are_reduced_right(tmp_path: Path) -> None:
    rng, numbers = Random(5), np.random.default_rng(5)
    cases: list[PlainCase] = []
    wanted: list[tuple[Array, list[Array]]] = []
    for length in LENGTHS:
        for dtype in ("float32", "bfloat16"):
            for make, compute in FUNCTIONS.values():
                graph = make(length, dtype)
                problem = problem_of(graph, {"B": 130})
                source = emit_candidate(problem, graph)
                (workload,) = problem.workloads
                choices = Case(problem, workload, Candidate(source)).choices
                cases.append(PlainCase(problem, workload, source, rng.choice(choices)))
                x = numbers.standard_normal((130, COLUMNS_OF_GROUPS)).astype(numpy_dtype(dtype))
                groups = x.astype(np.float64).reshape(130, -1, length)
                wanted.append((x, list(compute(groups))))
    assert sum("merged_in_group" in case.source for case in cases) > len(cases) // 3
    library = PlainLibrary(cases, tmp_path)
    for place, (x, results) in enumerate(wanted):
        given = library.run(place, {"x": x})
        for number, result in enumerate(results):
            made = given[f"out{number}"].reshape(result.shape)
            what = f"{cases[place].tune} out{number}:\n{cases[place].source}"
            assert np.allclose(made, result, rtol=1e-4, atol=1e-4), what


def test_reductions_over_as_many_rows_of_another_shape_are_lowered() -> None:
    first, second = value_type(2, 60, 64), value_type(120, 64)
    nodes = [
        _node("a", "_softmax.default", X, -1, False, to=first),
        _node("v", "view.default", Ref(node="a"), (120, 64), to=second),
        _node("y", "_softmax.default", Ref(node="v"), -1, False, to=second),
    ]
    graph = graph_of({"x": first}, nodes, Ref(node="y"))
    assert emit_candidate(problem_of(graph, {"B": 2}), graph).count("kernel: ") > 1


def test_a_clamp_that_broadcasts_is_no_part_of_a_saturating_rounding() -> None:
    column, row = value_type(ROWS, 1), value_type(ROWS, COLUMNS)
    nodes = [
        _node("least", "full.default", (ROWS, COLUMNS), -448.0, to=row),
        _node("most", "full.default", (ROWS, COLUMNS), 448.0, to=row),
        _node("c", "clamp.Tensor", X, Ref(node="least"), Ref(node="most"), to=row),
        Node(
            name="y",
            op="aten._to_copy.default",
            args=(Ref(node="c"),),
            kwargs={"dtype": "float8_e4m3fn"},
            results=(value_type(ROWS, COLUMNS, dtype="float8_e4m3fn"),),
        ),
    ]
    graph = graph_of({"x": column}, nodes, Ref(node="y"))
    source = emit_candidate(problem_of(graph, {"B": 200, "N": 2048}), graph)
    assert "op::at_most(" in source and "x_data[row + " not in source


def test_a_scalar_may_have_the_name_of_an_index() -> None:
    row = value_type(ROWS, COLUMNS)
    product = _node("y", "mul.Tensor", X, Ref(node="first"), to=row)
    graph = graph_of({"x": row, "first": value_type()}, [product], Ref(node="y"))
    problem = problem_of(graph, {"B": 200, "N": 2048})
    tensors = tuple(one for one in problem.tensors if one.name != "first")
    scalar = ScalarSpec(name="first", dtype="float32", value=2.0)
    changed = problem.model_copy(update={"tensors": tensors, "scalars": (scalar,)})
    source = emit_candidate(changed, graph)
    assert "float first_value" in source and "args: [x, first, out0, B]" in source
