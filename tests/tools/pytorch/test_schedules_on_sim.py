"""Rows made by every technique, on the simulator: right, without a race, nothing unwritten read."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import numpy as np
import pytest

from kopt.config.gpu_specs import gpu_for_arch
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.plan_resolver import resolve_plan
from kopt.kernels.status import Status
from kopt.tools.devices.device import ExecutionRequest, Program
from kopt.tools.pytorch.emit import emit_candidate
from kopt.tools.pytorch.graph import Argument, Node, Ref, ValueType
from kopt.tools.pytorch.lowering.row_schedule import TECHNIQUES, Schedule
from kopt.tools.sim.device import SimDevice
from support.hand_made_graphs import ROWS, graph_of, problem_of, value_type
from support.random_rows import MATRIX, NUMBERS, VECTOR, Array, RowFunction, random_function

pytestmark = pytest.mark.slow  # the simulator runs each thread as a fiber, a second or two each

SHORT, LONG, MANY = {"B": 5, "N": 301}, {"B": 3, "N": 2057}, {"B": 131, "N": 1027}
"""Rows that a block makes; those that several share; those of a function without reductions, which
is made by rows where they are many or shared. No length is a multiple of a pack's."""
ONE_BY_ONE = 12


@dataclass(frozen=True)
class _Trial:
    function: RowFunction
    techniques: frozenset[str]
    axes: Mapping[str, int]
    tune: Mapping[str, int]
    """Values that are not drawn."""


def _run(trial: _Trial, rng: Random, settings: Settings) -> str:
    """Return the kernel's source after it was right on the simulator."""
    problem = problem_of(trial.function.graph, trial.axes, static=("w",))
    candidate = Candidate(emit_candidate(problem, trial.function.graph, Schedule(trial.techniques)))
    case = Case(problem, problem.workloads[0], candidate)
    fitting = [one for one in case.choices if trial.tune.items() <= one.items()]
    assert fitting, candidate.source
    case = case.with_tune(rng.choice(fitting))
    plan = resolve_plan(case, gpu_for_arch("sm_90a")).plan
    assert plan is not None
    inputs = trial.function.inputs(trial.axes, np.random.default_rng(5))
    request = ExecutionRequest(
        Program(candidate, problem, plan), inputs, 0xA5, schedule_seed=1, timeout_s=60
    )
    outcome = SimDevice(settings, 2).execute(request)
    told = f"{case.tune}\n{candidate.source}"
    assert outcome.status is Status.PASSED, f"{outcome.diagnostics} {told}"
    assert outcome.diagnostics == (), told
    wrong = trial.function.wrong(inputs, outcome.outputs)
    assert wrong == [], f"{wrong} {told}"
    return candidate.source


def _drawn(rng: Random, *, overwrites: bool) -> _Trial:
    """Return a random function, with as many random techniques as fit it."""
    reduces = rng.random() < 0.7
    techniques = frozenset(one for one in TECHNIQUES if rng.random() < 0.6)
    is_shared = ("cluster_sums" if reduces else "split_rows") in techniques
    own = SHORT if reduces else MANY
    function = random_function(rng, reduces=reduces, overwrites=overwrites)
    return _Trial(function, techniques, LONG if is_shared else own, {})


@pytest.mark.parametrize("seed", range(ONE_BY_ONE))
def test_random_functions_of_rows_pass_with_random_techniques(
    seed: int, settings: Settings
) -> None:
    rng = Random(f"sim {seed}")
    _run(_drawn(rng, overwrites=False), rng, settings)


@pytest.mark.parametrize("seed", range(ONE_BY_ONE))
def test_random_functions_pass_where_rows_are_made_in_place(seed: int, settings: Settings) -> None:
    rng = Random(f"in place {seed}")
    source = _run(_drawn(rng, overwrites=True), rng, settings)
    assert source.count("kernel: ") == 1


@pytest.mark.slow
@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(200))
def test_many_random_functions_pass_with_random_techniques(seed: int, settings: Settings) -> None:
    rng = Random(f"nightly {seed}")
    _run(_drawn(rng, overwrites=seed % 2 == 1), rng, settings)


def _node(name: str, op: str, *args: Argument, to: ValueType = MATRIX) -> Node:
    return Node(name=name, op=f"aten.{op}", args=args, results=(to,))


def _normed() -> RowFunction:
    """Return (x - mean) / sqrt(1 + mean square) * w: the second sum is made of the first."""
    mean, apart, squares = Ref(node="m"), Ref(node="d"), Ref(node="v")
    nodes = [
        _node("m", "mean.dim", Ref(node="x"), (1,), True, to=NUMBERS),
        _node("d", "sub.Tensor", Ref(node="x"), mean),
        _node("q", "mul.Tensor", apart, apart),
        _node("v", "mean.dim", Ref(node="q"), (1,), True, to=NUMBERS),
        _node("a", "add.Tensor", squares, 1, to=NUMBERS),
        _node("r", "sqrt.default", Ref(node="a"), to=NUMBERS),
        _node("s", "div.Tensor", apart, Ref(node="r")),
        _node("y", "mul.Tensor", Ref(node="s"), Ref(node="w")),
    ]
    graph = graph_of({"x": MATRIX, "w": VECTOR}, nodes, Ref(node="y"))

    def compute(given: Mapping[str, Array]) -> dict[str, Array]:
        x = given["x"].astype(np.float64)
        apart = x - x.mean(1, keepdims=True)
        return {"out0": apart / np.sqrt((apart**2).mean(1, keepdims=True) + 1) * given["w"]}

    return RowFunction(graph, compute)


@pytest.mark.parametrize("trigger", [0, 1])
@pytest.mark.parametrize("hint", [1, 2])
def test_a_cluster_shares_two_sums_under_every_trigger_and_hint(
    trigger: int, hint: int, settings: Settings
) -> None:
    tune = {"TRIGGER": trigger, "HINT": hint}
    every = _Trial(_normed(), frozenset(TECHNIQUES), LONG, tune)
    source = _run(every, Random(f"{trigger} {hint}"), settings)
    assert "arrived[2]" in source and "cluster: SPLIT" in source


@pytest.mark.parametrize("split", [2, 4, 8])
def test_clusters_of_every_size_share_their_sums(split: int, settings: Settings) -> None:
    trial = _Trial(_normed(), frozenset({"cluster_sums"}), LONG, {"SPLIT": split})
    _run(trial, Random(split), settings)


def test_as_many_warps_as_fit_share_a_sum(settings: Settings) -> None:
    axes = {"B": 1, "N": 65_609}
    trial = _Trial(_normed(), frozenset({"cluster_sums"}), axes, {"SPLIT": 8, "ROW": 1024})
    _run(trial, Random(2), settings)


@pytest.mark.parametrize("op", ["any.dim", "argmax.default"])
def test_a_cluster_shares_states_of_any_type(op: str, settings: Settings) -> None:
    dtype = "bool" if op == "any.dim" else "int64"
    kind = value_type(ROWS, dtype=dtype)
    node = _node("y", op, Ref(node="x"), 1, False, to=kind)
    graph = graph_of({"x": MATRIX}, [node], Ref(node="y"))

    def compute(given: Mapping[str, Array]) -> dict[str, Array]:
        reduce = np.any if op == "any.dim" else np.argmax
        return {"out0": np.asarray(reduce(given["x"], 1))}

    trial = _Trial(RowFunction(graph, compute), frozenset({"cluster_sums"}), LONG, {})
    _run(trial, Random(1), settings)
