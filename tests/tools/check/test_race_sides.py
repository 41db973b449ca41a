"""Both accesses of a race: the one that is stopped at, and the one that another order stops at."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.check.race_sides import ORDERS, other_side
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.devices.device import Device, ExecutionOutcome, ExecutionRequest
from kopt.tools.sim.device import SimDevice
from support.small_silu import write_small_silu

EXCHANGE = """
  __shared__ float passed_on[BLOCK];
  passed_on[threadIdx.x] = static_cast<float>(threadIdx.x);
  const float neighbour = passed_on[(threadIdx.x + 64) % BLOCK];
  if (neighbour < 0.0f) return;
"""


def race(line: int, access: str = "4-byte store", thread: int = 0, **more: str) -> Any:
    earlier, variable = more.get("earlier", "loaded"), more.get("variable", "sums")
    message = (
        f"data race: unordered {access} of `{variable}` at byte 0 of 64 (block (0, 0, 0), thread"
        f" ({thread}, 0, 0)): thread 9 of the same block {earlier} it"
    )
    found = (Diagnostic(message=message, line=line),)
    return ExecutionOutcome(Status.DATA_RACE, diagnostics=found)


class Orders:
    """A device that gives one outcome after the other and keeps the orders that were asked for."""

    def __init__(self, outcomes: Sequence[ExecutionOutcome]) -> None:
        self.outcomes = list(outcomes)
        self.seeds: list[int] = []

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        self.seeds.append(request.schedule_seed)
        return self.outcomes.pop(0)


def found(*outcomes: ExecutionOutcome, first: Any = None) -> tuple[Diagnostic | None, list[int]]:
    device = Orders(outcomes)
    request = ExecutionRequest(cast(Any, None), {}, 0, schedule_seed=3)
    note = other_side(request, first or race(7), cast(Device, device))
    return note, device.seeds


def test_the_first_order_that_stops_elsewhere_gives_the_other_line() -> None:
    note, seeds = found(race(7), ExecutionOutcome(Status.PASSED), race(9, "4-byte load", 64))
    assert note is not None and (note.severity, note.line) == ("note", 9)
    assert "4-byte load of `sums` at line 9" in note.message
    assert "thread (64, 0, 0)" in note.message
    assert seeds == [4, 5, 6]


def test_a_line_that_races_with_itself_is_said_to() -> None:
    orders = [race(7, thread=n, earlier="stored to") for n in range(ORDERS)]
    note, seeds = found(*orders, first=orders[0])
    assert note is not None and note.line == 7 and "thread (1, 0, 0)" in note.message
    assert len(seeds) == ORDERS


@pytest.mark.parametrize(
    "outcomes",
    [
        [race(7)] * ORDERS,
        [race(9, "4-byte load", variable="other")] * ORDERS,
        [race(7, thread=64)] * ORDERS,  # a store again, but the other side loaded
        [ExecutionOutcome(Status.PASSED)] * ORDERS,
        [ExecutionOutcome(Status.TIMEOUT)],
    ],
)
def test_where_no_order_shows_it_nothing_is_claimed(outcomes: list[ExecutionOutcome]) -> None:
    assert found(*outcomes)[0] is None


def test_other_faults_are_run_once() -> None:
    for first in (
        ExecutionOutcome(Status.PASSED),
        ExecutionOutcome(Status.OUT_OF_BOUNDS, diagnostics=(Diagnostic(message="x"),)),
        ExecutionOutcome(Status.DATA_RACE, diagnostics=(Diagnostic(message="an mbarrier"),)),
    ):
        assert found(first=first) == (None, [])


def test_a_missing_barrier_is_told_with_the_store_and_the_load(
    tmp_path: Path, settings: Settings
) -> None:
    problem = load_problem(write_small_silu(tmp_path) / "silu_and_mul_small")
    source = (problem.folder / "reference.cu").read_text("utf-8")
    racing = source.replace("int H) {", f"int H) {{{EXCHANGE}")
    lines = racing.splitlines()
    stored = 1 + next(n for n, line in enumerate(lines) if "passed_on[threadIdx.x] =" in line)
    case = Case(problem, problem.workloads[0], Candidate(racing))
    result = check_candidate(CheckRequest(case, "quick"), SimDevice(settings), settings)
    assert result.status is Status.DATA_RACE
    error, note, *_ = result.diagnostics
    assert {error.line, note.line} == {stored, stored + 1}
    assert "the other side of the race" in note.message
