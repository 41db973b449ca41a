"""What the simulator finds beside a GPU: it refuses, it passes with names, or it says why not."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from select import select

import pytest

from kopt.config.errors import InfraError
from kopt.config.gpu_specs import GpuSpec, load_gpus
from kopt.config.pollable_event import PollableEvent
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult
from kopt.kernels.plan import Launch, LaunchPlan
from kopt.kernels.problem import make_workload
from kopt.kernels.status import Status
from kopt.tools.check import race_check, stage
from kopt.tools.check.cases import InputCase, Run, Seeds, plan_cases
from kopt.tools.check.run_cases import CaseBatch
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.devices.device import Arrays, ExecutionOutcome, ExecutionRequest
from support.bench_cases import SOURCE, FakeCompiler
from support.synthetic_check import (
    NumpyDevice,
    Spoil,
    leave_right,
    plans_for,
    synthetic_problem,
)

SHAPES = ((64, 64), (8, 64), (1, 64))
Simulate = Callable[[NumpyDevice], NumpyDevice]


@pytest.fixture
def simulate(monkeypatch: pytest.MonkeyPatch) -> Simulate:
    """Return a function that puts a device in the simulator's place, and gives it back."""
    monkeypatch.setattr(stage, "compile_candidate", FakeCompiler())

    def install(simulator: NumpyDevice) -> NumpyDevice:
        def opened(settings: Settings, stop: PollableEvent) -> NumpyDevice:
            del settings
            if isinstance(simulator, _Patient):
                simulator.stop = stop
            return simulator

        monkeypatch.setattr(race_check, "SimDevice", opened)
        return simulator

    return install


@pytest.fixture
def request_(tmp_path: Path) -> CheckRequest:
    problem = synthetic_problem(tmp_path / "problem", SHAPES)
    case = Case(problem, problem.workloads[0], Candidate(SOURCE))
    return CheckRequest(case=case, level="full")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", jobs=2)


def replace_grid(plan: LaunchPlan, blocks: int) -> LaunchPlan:
    """Return the plan with one launch of so many blocks."""
    launch = Launch(kernel="k", grid=(blocks, 1, 1), block=(32, 1, 1), arguments=())
    return plan.model_copy(update={"launches": (launch,)})


def _spec() -> GpuSpec:
    return load_gpus()["H100"]


def _gpu(spoil: Spoil = leave_right) -> NumpyDevice:
    return NumpyDevice(spoil, name="cuda:0", gpu=_spec())


def _check(request: CheckRequest, settings: Settings, spoil: Spoil = leave_right) -> CheckResult:
    return check_candidate(request, _gpu(spoil), settings)


def test_what_passed_names_the_smallest_workload_of_several_blocks(
    request_: CheckRequest, settings: Settings, simulate: Simulate
) -> None:
    simulator = simulate(NumpyDevice())
    result = _check(request_, settings)
    assert result.status is Status.PASSED
    races = result.race_check
    assert races is not None and (races.outcome, races.reason) == ("passed", None)
    assert races.workloads == ("b8xh64",)
    assert races.words == "the simulator saw every access at b8xh64: no race, nothing out of bounds"
    orders = {one.schedule_seed for one in simulator.requests}
    assert orders == {0, 1}
    assert CheckResult.model_validate_json(result.model_dump_json(by_alias=True)) == result


@pytest.mark.parametrize("status", [Status.DATA_RACE, Status.OUT_OF_BOUNDS, Status.CRASH])
def test_a_finding_refuses_what_the_gpu_let_pass(
    request_: CheckRequest, settings: Settings, simulate: Simulate, status: Status
) -> None:
    simulate(NumpyDevice(status=status))
    result = _check(request_, settings)
    assert result.status is status
    assert result.race_check is not None
    assert result.race_check.outcome == "findings"
    assert {one.status for one in result.workloads} == {Status.PASSED}
    assert (
        "found on the simulator; every output on cuda:0 was right" in result.diagnostics[-1].message
    )


def test_drawn_shapes_take_part_up_to_the_size_of_the_named_ones(request_: CheckRequest) -> None:
    problem = request_.case.problem
    shapes = [make_workload(problem, {"B": rows, "H": 64}) for rows in (1, 5, 37)]
    runs = (Run(0xFF, 3),)
    drawn = tuple(InputCase(one, 7, True, "tiny", runs, drawn=True) for one in shapes)
    named = plan_cases(problem, problem.workloads, "full", Seeds((1, 2), (7, 8)))
    case = replace(
        request_.case,
        problem=problem.model_copy(update={"workloads": (*problem.workloads, *shapes)}),
    )
    batch = CaseBatch(case, plans_for(case.problem), {}, (*named, *drawn))
    taken = race_check.race_cases(batch)
    assert [one.workload.name for one in taken] == ["b1xh64", "b1xh64"]
    by_row = {name: replace_grid(plan, plan.axes["B"]) for name, plan in batch.plans.items()}
    taken = race_check.race_cases(replace(batch, plans=by_row))
    assert [one.workload.name for one in taken] == ["b8xh64", "b1xh64", "b5xh64"]
    assert [(one.seed, len(one.runs)) for one in taken] == [(1, 2), (7, 1), (7, 1)]


@pytest.mark.parametrize("status", [Status.UNSUPPORTED_ON_SIM, Status.LAUNCH_ERROR, Status.TIMEOUT])
def test_what_the_simulator_cannot_run_passes_and_says_that_no_race_check_stands_behind_it(
    request_: CheckRequest, settings: Settings, simulate: Simulate, status: Status
) -> None:
    simulate(NumpyDevice(status=status))
    result = _check(request_, settings)
    assert result.status is Status.PASSED
    assert result.race_check is not None
    words = f"no race check stands behind this result: {status}"
    assert result.race_check.words.startswith(words)


@dataclass
class _Broken(NumpyDevice):
    """Fails as a simulator does whose machine is at fault."""

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        """Fail."""
        raise InfraError("the simulator ended with status -9")


def test_a_simulator_that_breaks_says_nothing_of_the_candidate(
    request_: CheckRequest, settings: Settings, simulate: Simulate
) -> None:
    simulate(_Broken())
    result = _check(request_, settings)
    assert result.status is Status.PASSED
    assert result.race_check is not None
    assert result.race_check.reason == "the simulator ended with status -9"


def test_a_quick_check_and_one_on_the_simulator_have_no_race_check(
    request_: CheckRequest, settings: Settings, simulate: Simulate
) -> None:
    simulator = simulate(NumpyDevice(status=Status.DATA_RACE))
    quick = _check(replace(request_, level="quick"), settings)
    on_sim = check_candidate(request_, NumpyDevice(name="sim"), settings)
    assert [(one.status, one.race_check) for one in (quick, on_sim)] == [(Status.PASSED, None)] * 2
    assert simulator.requests == []


@dataclass
class _Patient(NumpyDevice):
    """Runs until it is told to stop, as a simulator does that has much to do."""

    stop: PollableEvent | None = None

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        """Wait for the end."""
        assert self.stop is not None
        select([self.stop], [], [])
        raise InfraError("the simulator was told to stop")


def _spoil_all(request: ExecutionRequest, outputs: Arrays) -> None:
    del request
    outputs["y_bf16"][:] = 0


def test_what_the_gpu_finds_ends_the_simulation(
    request_: CheckRequest, settings: Settings, simulate: Simulate
) -> None:
    simulate(_Patient())
    result = _check(request_, settings, _spoil_all)
    assert (result.status, result.race_check) == (Status.INCORRECT, None)


@pytest.mark.parametrize("error", [KeyboardInterrupt, InfraError])
def test_an_interrupt_and_a_lost_gpu_end_the_simulation(
    request_: CheckRequest,
    settings: Settings,
    simulate: Simulate,
    error: type[BaseException],
) -> None:
    simulator = _Patient()
    simulate(simulator)

    def interrupted(request: ExecutionRequest, outputs: Arrays) -> None:
        raise error("stop")

    with pytest.raises(error):
        _check(request_, settings, interrupted)
    assert simulator.stop is None or simulator.stop.is_set


def test_kernels_that_timed_shapes_alone_launch_leave_the_result_without_a_race_check(
    request_: CheckRequest,
) -> None:
    problem = request_.case.problem
    timed = problem.workloads[0].model_copy(update={"use": "time"})
    problem = problem.model_copy(update={"workloads": (timed, *problem.workloads[1:])})
    cases = plan_cases(problem, problem.workloads, "full", Seeds((1, 2), (7, 8)))
    batch = CaseBatch(replace(request_.case, problem=problem), plans_for(problem), {}, cases)
    assert race_check.timed_alone(batch) == ()
    plans = {**batch.plans, timed.name: replace_grid(batch.plans[timed.name], 8)}
    assert race_check.timed_alone(replace(batch, plans=plans)) == (timed.name,)
