"""Runs of one check on one device: what lies behind a failed run is not executed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kopt.config.gpu_specs import gpu_for_arch
from kopt.kernels.status import Status
from kopt.tools.check.ordered_device import OrderedDevice, RunNotNeeded
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest, Program
from support.synthetic_check import CANDIDATE, NumpyDevice, plans_for, synthetic_problem


class _Hangs(NumpyDevice):
    """A device on which every execution ends by its time limit."""

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        self.requests.append(request)
        return ExecutionOutcome(Status.TIMEOUT)


@pytest.fixture
def request_(tmp_path: Path) -> ExecutionRequest:
    problem = synthetic_problem(tmp_path / "problem", ((8, 64),))
    program = Program(CANDIDATE, problem, plans_for(problem)["b8xh64"])
    return ExecutionRequest(program, {}, 0xFF)


def test_a_run_behind_one_that_hangs_is_not_executed(request_: ExecutionRequest) -> None:
    device = _Hangs()
    ordered = OrderedDevice(device)
    assert ordered.run_device(3).execute(request_).status is Status.TIMEOUT
    with pytest.raises(RunNotNeeded):
        ordered.run_device(4).execute(request_)
    assert len(device.requests) == 1


def test_a_run_before_one_that_hangs_is_executed_and_decides(request_: ExecutionRequest) -> None:
    device = _Hangs()
    ordered = OrderedDevice(device)
    ordered.run_device(3).execute(request_)
    assert ordered.run_device(1).execute(request_).status is Status.TIMEOUT
    with pytest.raises(RunNotNeeded):
        ordered.run_device(2).execute(request_)


def test_a_run_with_wrong_outputs_ends_those_behind_it(request_: ExecutionRequest) -> None:
    ordered = OrderedDevice(_Hangs())
    ordered.note_failure(0)
    with pytest.raises(RunNotNeeded):
        ordered.run_device(1).execute(request_)


def test_a_gpu_executes_runs_in_their_order(request_: ExecutionRequest) -> None:
    device = NumpyDevice(status=Status.LAUNCH_ERROR, gpu=gpu_for_arch("sm_90a"))
    ordered = OrderedDevice(device)
    with ThreadPoolExecutor(1) as threads:
        second = threads.submit(ordered.run_device(1).execute, request_)
        assert ordered.run_device(0).execute(request_).status is Status.LAUNCH_ERROR
        assert isinstance(second.exception(), RunNotNeeded)
    assert len(device.requests) == 1


def test_a_run_that_executes_nothing_lets_the_others_have_the_gpu(
    request_: ExecutionRequest,
) -> None:
    ordered = OrderedDevice(NumpyDevice(status=Status.TIMEOUT, gpu=gpu_for_arch("sm_90a")))
    ordered.end(0)
    assert ordered.run_device(1).execute(request_).status is Status.TIMEOUT
