"""Emitted candidates: what they say, what is refused, and that the compiler takes them."""

import re

import pytest

from kopt.config.errors import ToolError, UnsupportedOperator
from kopt.config.gpu_specs import gpu_for_arch
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.header import MAX_LAUNCHES
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.plan_resolver import resolve_plan
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.pytorch.emit import emit_candidate
from kopt.tools.pytorch.graph import Argument, Graph, Node, Ref, ValueType
from support.hand_made_graphs import COLUMNS, ROWS, graph_of, problem_of, value_type

MATRIX = value_type(ROWS, COLUMNS)
WORKLOADS = ({"B": 3, "N": 5}, {"B": 70, "N": 33})


def _node(name: str, op: str, *args: Argument, to: ValueType = MATRIX) -> Node:
    line = f"model.py:7: {name} = f(x)"
    return Node(name=name, op=f"aten.{op}", args=args, results=(to,), source=line)


def _chain(count: int) -> Graph:
    """Return sums along rows, each of which needs a launch of its own."""
    nodes: list[Node] = []
    last = Ref(node="x")
    for place in range(count):
        node = _node(f"cumsum_{place}", "cumsum.default", last, 1)
        nodes.append(node)
        last = Ref(node=node.name)
    return graph_of({"x": MATRIX}, nodes, last)


def _plan(problem: Problem, source: str, number: int = 0) -> LaunchPlan:
    case = Case(problem, problem.workloads[number], Candidate(source))
    outcome = resolve_plan(case, gpu_for_arch("sm_90a"))
    assert outcome.plan is not None, outcome.diagnostics
    return outcome.plan


def _product() -> Graph:
    square = value_type(ROWS, ROWS)
    turned = _node("t", "permute.default", Ref(node="x"), (1, 0), to=value_type(COLUMNS, ROWS))
    mm = _node("mm", "mm.default", Ref(node="x"), Ref(node="t"), to=square)
    relu = _node("relu", "relu.default", Ref(node="mm"), to=square)
    return graph_of({"x": MATRIX}, [turned, mm, relu], Ref(node="relu"))


def test_pointwise_operators_join_the_kernel_before_them() -> None:
    graph = _product()
    source = emit_candidate(problem_of(graph, *WORKLOADS), graph)
    assert re.findall(r"kernel: (\w+)", source) == ["k1_mm"]
    assert "// mm: model.py:7: mm = f(x)\n// relu: model.py:7: relu = f(x)\nextern" in source


def test_a_value_that_meets_its_function_again_is_joined_with_both() -> None:
    square = value_type(ROWS, ROWS)
    nodes = _product().nodes[:2]
    gate = _node("gate", "sigmoid.default", Ref(node="mm"), to=square)
    silu = _node("silu", "mul.Tensor", Ref(node="mm"), Ref(node="gate"), to=square)
    graph = graph_of({"x": MATRIX}, [*nodes, gate, silu], Ref(node="silu"))
    source = emit_candidate(problem_of(graph, *WORKLOADS), graph)
    assert re.findall(r"kernel: (\w+)", source) == ["k1_mm"]


def test_a_product_with_two_readers_is_computed_once() -> None:
    square = value_type(ROWS, ROWS)
    nodes = _product().nodes[:2]
    gate = _node("gate", "sigmoid.default", Ref(node="mm"), to=square)
    total = _node("total", "cumsum.default", Ref(node="mm"), 1, to=square)
    graph = graph_of({"x": MATRIX}, [*nodes, gate, total], Ref(node="gate"), Ref(node="total"))
    source = emit_candidate(problem_of(graph, *WORKLOADS), graph)
    assert re.findall(r"kernel: (\w+)", source) == ["k1_mm", "k2_gate", "k3_total"]


def test_sizes_are_axes_in_header_and_code() -> None:
    graph = _product()
    source = emit_candidate(problem_of(graph, *WORKLOADS), graph)
    assert "specialize: [B, N]" in source
    assert not re.search(r"\b(70|33)\b", source)
    assert "fast_math: false" in source


def test_buffers_that_are_never_alive_together_share_one() -> None:
    graph = _chain(9)
    problem = problem_of(graph, *WORKLOADS)
    plan = _plan(problem, emit_candidate(problem, graph), 1)
    assert len(plan.launches) == 9
    assert [scratch.shape for scratch in plan.scratch] == [(70 * 33,)] * 2


def test_the_plan_of_every_workload_can_be_resolved() -> None:
    graph = _product()
    problem = problem_of(graph, *WORKLOADS)
    source = emit_candidate(problem, graph)
    assert [_plan(problem, source, number).launches[0].grid[0] for number in (0, 1)] == [1, 9]


def test_more_launches_than_a_candidate_may_have_are_refused() -> None:
    graph = _chain(MAX_LAUNCHES + 1)
    with pytest.raises(ToolError, match=rf"needs {MAX_LAUNCHES + 1} launches.*most {MAX_LAUNCHES}"):
        emit_candidate(problem_of(graph, *WORKLOADS), graph)


@pytest.mark.parametrize(
    ("op", "why"),
    [
        ("rand_like.default", r"is random \(model.py:7: y = f\(x\)\)"),
        ("nonzero.default", r"shape that depends on data \(model.py:7"),
        ("fft_fft.default", r"is not supported \(model.py:7.*supported are .*addmm"),
    ],
)
def test_an_operator_without_lowering_is_refused_by_name_and_line(op: str, why: str) -> None:
    graph = graph_of({"x": MATRIX}, [_node("y", op, Ref(node="x"))], Ref(node="y"))
    with pytest.raises(UnsupportedOperator, match=rf"aten.{op} .*{why}"):
        emit_candidate(problem_of(graph, *WORKLOADS), graph)


def test_dropout_is_refused_in_training_and_nothing_else_of_eval_mode() -> None:
    def dropout(is_training: bool) -> Graph:
        node = _node("y", "native_dropout.default", Ref(node="x"), 0.5, is_training)
        return graph_of({"x": MATRIX}, [node], Ref(node="y"))

    with pytest.raises(UnsupportedOperator, match="eval mode"):
        emit_candidate(problem_of(dropout(True), *WORKLOADS), dropout(True))
    assert "k1_" in emit_candidate(problem_of(dropout(False), *WORKLOADS), dropout(False))


def test_a_complex_result_is_refused() -> None:
    to = value_type(ROWS, COLUMNS, dtype="complex64")
    node = _node("y", "mul.Tensor", Ref(node="x"), Ref(node="x"), to=to)
    real = _node("z", "abs.default", Ref(node="y"))
    graph = graph_of({"x": MATRIX}, [node, real], Ref(node="z"))
    with pytest.raises(UnsupportedOperator, match=r"aten.mul.Tensor gives complex64"):
        emit_candidate(problem_of(graph, *WORKLOADS), graph)


def test_what_no_output_needs_is_left_out() -> None:
    unused = _node("unused", "rand_like.default", Ref(node="x"))
    used = _node("y", "relu.default", Ref(node="x"))
    graph = graph_of({"x": MATRIX}, [unused, used], Ref(node="y"))
    assert "rand" not in emit_candidate(problem_of(graph, *WORKLOADS), graph)


def test_positions_are_wide_where_a_tensor_has_two_to_the_31_elements() -> None:
    turned = value_type(COLUMNS, ROWS)
    summed = _node("y", "cumsum.default", Ref(node="x"), 1, to=turned)
    graph = graph_of({"x": turned}, [summed], Ref(node="y"))
    source = emit_candidate(problem_of(graph, {"B": 1 << 16, "N": 1 << 16}), graph)
    assert "using Index = op::IndexOf<op::Wide(KOPT_N) * KOPT_B>;" in source


def test_a_kernel_that_makes_rows_serves_any_number_of_them() -> None:
    graph = graph_of({"x": MATRIX}, [_node("y", "relu.default", Ref(node="x"))], Ref(node="y"))
    source = emit_candidate(problem_of(graph, {"B": 1 << 16, "N": 1 << 16}), graph)
    assert ("using Index = op::Wide;" in source, "KOPT_B" in source) == (True, False)
    assert "specialize: [N]" in source


@pytest.mark.slow  # nvcc compiles for two workloads
def test_the_compile_stage_takes_a_candidate(settings: Settings) -> None:
    graph = _product()
    problem = problem_of(graph, *WORKLOADS)
    case = Case(problem, problem.workloads[0], Candidate(emit_candidate(problem, graph)))
    result = compile_candidate(CompileRequest(case=case, archs=("sm_90a",)), settings)
    assert result.status is Status.PASSED, result.diagnostics
