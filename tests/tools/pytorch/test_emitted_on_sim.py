"""Emitted candidates on the simulator: no race, no wild access, nothing read that nobody wrote."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from kopt.config.gpu_specs import gpu_for_arch
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.plan_resolver import resolve_plan
from kopt.kernels.status import Status
from kopt.tools.devices.device import ExecutionRequest, Program
from kopt.tools.pytorch.emit import emit_candidate
from kopt.tools.pytorch.graph import Argument, Graph, Node, Ref, ValueType
from kopt.tools.sim.device import SimDevice
from support.hand_made_graphs import COLUMNS, ROWS, graph_of, problem_of, value_type

pytestmark = pytest.mark.slow  # the simulator runs each thread as a fiber, a second or two each

Array = npt.NDArray[Any]
MATRIX = value_type(ROWS, COLUMNS)
X = Ref(node="x")


@dataclass(frozen=True)
class _Trial:
    graph: Graph
    workload: Mapping[str, int]
    wanted: Callable[[Mapping[str, Array]], Array]
    tune: Mapping[str, int]


def _node(op: str, *args: Argument, to: ValueType = MATRIX, name: str = "y") -> Node:
    return Node(name=name, op=f"aten.{op}", args=args, results=(to,))


def _softmax(given: Mapping[str, Array]) -> Array:
    powers = np.exp(given["x"] - given["x"].max(1, keepdims=True))
    shares: Array = powers / powers.sum(1, keepdims=True)
    return shares


def _scaled_product(given: Mapping[str, Array]) -> Array:
    product: Array = np.maximum(given["x"] @ given["x"].T, 0)
    return product


def _recurrent(given: Mapping[str, Array]) -> Array:
    def sigmoid(x: Array) -> Array:
        return 1 / (1 + np.exp(-x))

    state, cell = given["h"][0], given["c"][0]
    outputs: list[Array] = []
    for step in given["x"]:
        gates = step @ given["w"].T + state @ given["u"].T
        first, forget, candidate, last = np.split(gates, 4, axis=1)
        cell = sigmoid(forget) * cell + sigmoid(first) * np.tanh(candidate)
        state = sigmoid(last) * np.tanh(cell)
        outputs.append(state)
    return np.stack(outputs)


def _lstm() -> Graph:
    shapes = {
        "x": value_type(ROWS, 3, 4),
        "h": value_type(1, 3, 5),
        "c": value_type(1, 3, 5),
        "w": value_type(20, 4),
        "u": value_type(20, 5),
    }
    end = value_type(1, 3, 5)
    weights: Argument = (Ref(node="w"), Ref(node="u"))
    lists: tuple[Argument, ...] = ((Ref(node="h"), Ref(node="c")), weights)
    rest: tuple[Argument, ...] = (False, 1, 0.0, False, False, False)
    node = Node(
        name="y",
        op="aten.lstm.input",
        args=(X, *lists, *rest),
        results=(value_type(ROWS, 3, 5), end, end),
    )
    return graph_of(shapes, [node], Ref(node="y"))


def _tiles() -> Graph:
    square = value_type(ROWS, ROWS)
    turned = _node("permute.default", X, (1, 0), to=value_type(COLUMNS, ROWS), name="t")
    product = _node("mm.default", X, Ref(node="t"), to=square, name="mm")
    relu = _node("relu.default", Ref(node="mm"), to=square)
    return graph_of({"x": MATRIX}, [turned, product, relu], Ref(node="y"))


def _one(op: str, *args: Argument, to: ValueType = MATRIX) -> Graph:
    return graph_of({"x": MATRIX}, [_node(op, X, *args, to=to)], Ref(node="y"))


TRIALS = {
    "tiles": _Trial(_tiles(), {"B": 37, "N": 21}, _scaled_product, {"TILE": 32, "TILE_K": 8}),
    "several_rows_of_a_block": _Trial(
        _one("_softmax.default", 1, False),
        {"B": 3, "N": 304},
        _softmax,
        {"ROW": 32, "ROWS": 2},
    ),
    "a_row_of_several_warps": _Trial(
        _one("_softmax.default", 1, False),
        {"B": 3, "N": 301},
        _softmax,
        {"ROW": 64, "ROWS": 1},
    ),
    "a_block_for_each_column": _Trial(
        _one("_softmax.default", 0, False),
        {"B": 301, "N": 3},
        lambda given: _softmax({"x": given["x"].T}).T,
        {"REDUCE": 128},
    ),
    "two_launches": _Trial(
        _one("sum.dim_IntList", (1,), to=value_type(ROWS)),
        {"B": 2, "N": 65_600},
        lambda given: given["x"].sum(1, dtype=np.float64).astype(np.float32),
        {"REDUCE": 128, "PARTS": 32},
    ),
    "a_scan_by_blocks": _Trial(
        _one("cumsum.default", 1),
        {"B": 3, "N": 301},
        lambda given: np.cumsum(given["x"], axis=1, dtype=np.float32),
        {"REDUCE": 128},
    ),
    "a_recurrent_layer": _Trial(_lstm(), {"B": 6}, _recurrent, {"REDUCE": 128}),
}


@pytest.mark.parametrize("name", TRIALS)
def test_a_candidate_passes_on_the_simulator(name: str, settings: Settings) -> None:
    trial = TRIALS[name]
    problem = problem_of(trial.graph, trial.workload)
    candidate = Candidate(emit_candidate(problem, trial.graph))
    case = Case(problem, problem.workloads[0], candidate, trial.tune)
    plan = resolve_plan(case, gpu_for_arch("sm_90a")).plan
    assert plan is not None
    rng = np.random.default_rng(5)
    axes = problem.workloads[0].axes
    inputs: dict[str, Any] = {
        tensor.name: rng.standard_normal([axes[axis] for axis in tensor.shape], np.float32)
        for tensor in problem.tensors
        if tensor.role == "in"
    }
    request = ExecutionRequest(
        Program(candidate, problem, plan), inputs, 0xA5, schedule_seed=1, timeout_s=60
    )
    outcome = SimDevice(settings, 2).execute(request)
    assert outcome.status is Status.PASSED, outcome.diagnostics
    np.testing.assert_allclose(outcome.outputs["out0"], trial.wanted(inputs), rtol=1e-4, atol=1e-3)
