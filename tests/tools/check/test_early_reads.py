"""A dependent launch that is right only where the launch before has ended, and is told so."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from kopt.config.gpu_specs import load_gpus
from kopt.config.settings import Settings
from kopt.kernels.case import Case
from kopt.kernels.plan import Launch
from kopt.kernels.status import Status
from kopt.tools.check.cases import Seeds, plan_cases
from kopt.tools.check.run_cases import BatchResult, CaseBatch, run_cases
from kopt.tools.devices.device import Arrays, ExecutionOutcome, ExecutionRequest
from support.synthetic_check import CANDIDATE, NumpyDevice, plans_for, synthetic_problem

SAID = "right only where the launch before has ended"
Check = Callable[..., BatchResult]


@dataclass
class Device(NumpyDevice):
    """A GPU on which an execution with inputs in time may fail."""

    fails_early: bool = False

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        if self.fails_early and not request.late_inputs:
            return ExecutionOutcome(Status.CRASH)
        return super().execute(request)


def reads_early(request: ExecutionRequest, outputs: Arrays) -> None:
    """Be wrong where the inputs come late."""
    if request.late_inputs:
        outputs["y_bf16"] /= 2


def is_wrong(request: ExecutionRequest, outputs: Arrays) -> None:
    """Be wrong whenever the inputs come."""
    del request
    outputs["y_bf16"] /= 2


@pytest.fixture
def check(tmp_path: Path) -> Check:
    problem = synthetic_problem(tmp_path / "problem", ((8, 64),))
    settings = Settings(home=tmp_path / "home", jobs=2)

    def run(device: NumpyDevice, *, pdl: bool = True) -> BatchResult:
        launch = Launch(kernel="k", grid=(1, 1, 1), block=(32, 1, 1), pdl=pdl, arguments=())
        plans = {
            name: plan.model_copy(update={"launches": (launch,)})
            for name, plan in plans_for(problem).items()
        }
        seeds = Seeds(visible=(1,), hidden=())
        cases = plan_cases(problem, problem.workloads, "quick", seeds)
        batch = CaseBatch(Case(problem, problem.workloads[0], CANDIDATE), plans, {}, cases)
        return run_cases(batch, device, settings)

    return run


def test_an_early_read_is_told_with_where_to_look(check: Check) -> None:
    result = check(Device(reads_early, gpu=load_gpus()["H100"]))
    assert result.status is Status.INCORRECT
    told, values = result.diagnostics[:2]
    assert told.message.startswith(SAID)
    assert told.hint is not None and "ACQBULK" in told.hint
    assert "y_bf16" in values.message


def test_what_is_wrong_in_any_case_is_told_as_before(check: Check) -> None:
    result = check(Device(is_wrong, gpu=load_gpus()["H100"]))
    assert result.status is Status.INCORRECT
    assert not any(SAID in one.message for one in result.diagnostics)


def test_a_failure_of_the_second_look_hides_nothing(check: Check) -> None:
    result = check(Device(reads_early, gpu=load_gpus()["H100"], fails_early=True))
    assert result.status is Status.INCORRECT
    assert "y_bf16" in result.diagnostics[0].message


@pytest.mark.parametrize("on_gpu", [True, False])
def test_nothing_is_executed_again_where_inputs_are_never_late(check: Check, on_gpu: bool) -> None:
    gpu = load_gpus()["H100"] if on_gpu else None
    device = Device(is_wrong, gpu=gpu)
    assert check(device, pdl=not on_gpu).status is Status.INCORRECT
    assert all(request.late_inputs for request in device.requests)
