"""Executing cases: statuses, what is unwritten, the first failure, and that nothing is random."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kopt.config.gpu_specs import gpu_for_arch
from kopt.config.settings import Settings
from kopt.kernels.case import Case
from kopt.kernels.case_inputs import SINGLE_REGIMES
from kopt.kernels.check_result import CheckLevel
from kopt.kernels.counters import ExecutionCounters
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status
from kopt.tools.check.cases import Seeds, plan_cases
from kopt.tools.check.run_cases import BatchResult, CaseBatch, run_cases
from kopt.tools.devices.device import Arrays, ExecutionOutcome, ExecutionRequest
from support.synthetic_check import CANDIDATE, NumpyDevice, Spoil, plans_for, synthetic_problem

SEEDS = Seeds(visible=(1, 2, 3), hidden=(1001, 1002))


@pytest.fixture
def problem(tmp_path: Path) -> Problem:
    return synthetic_problem(tmp_path / "problem", ((16, 64), (8, 64)))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home", jobs=2)


def _batch(problem: Problem, level: CheckLevel) -> CaseBatch:
    workloads = problem.workloads if level == "full" else problem.workloads[:1]
    return CaseBatch(
        case=Case(problem, problem.workloads[0], CANDIDATE),
        plans=plans_for(problem),
        cubins={},
        cases=plan_cases(problem, workloads, level, SEEDS),
    )


def _run(problem: Problem, settings: Settings, spoil: Spoil) -> BatchResult:
    return run_cases(_batch(problem, "full"), NumpyDevice(spoil), settings)


def test_right_outputs_pass_in_every_case(problem: Problem, settings: Settings) -> None:
    device = NumpyDevice()
    result = run_cases(_batch(problem, "full"), device, settings)
    assert result.status is Status.PASSED
    assert [check.workload for check in result.workloads] == ["b8xh64", "b16xh64"]
    # Each regime, ordinary inputs once more and one regime of the draw; zero_blocks runs twice.
    for check in result.workloads:
        assert (check.visible_seeds, check.hidden_seeds, check.poisons) == (3, 2, 2)
        assert check.executions == check.schedules == len(SINGLE_REGIMES) + 3
    assert len(device.requests) == sum(check.executions for check in result.workloads)
    assert all(entry.within_fixed_limits for entry in result.accuracy)


def test_quick_executes_twice(problem: Problem, settings: Settings) -> None:
    device = NumpyDevice()
    result = run_cases(_batch(problem, "quick"), device, settings)
    assert (result.status, len(device.requests)) == (Status.PASSED, 2)
    assert {request.poison for request in device.requests} == {0xFF, 0x55}


def test_inputs_cannot_be_written_by_a_device(problem: Problem, settings: Settings) -> None:
    def write_input(request: ExecutionRequest, outputs: Arrays) -> None:
        request.inputs["x"][0, 0] = 0

    with pytest.raises(ValueError, match="read-only"):
        _run(problem, settings, write_input)


def test_a_wrong_value_is_incorrect_and_ends_the_check(
    problem: Problem, settings: Settings
) -> None:
    def spoil(request: ExecutionRequest, outputs: Arrays) -> None:
        outputs["y_bf16"][2, 5] = 1e3

    result = _run(problem, settings, spoil)
    assert result.status is Status.INCORRECT
    assert result.mismatch is not None
    assert result.mismatch.model_dump(include={"workload", "tensor", "gate", "row", "column"}) == {
        "workload": "b8xh64",
        "tensor": "y_bf16",
        "gate": "ulp",
        "row": 2,
        "column": 5,
    }
    assert (result.mismatch.index, result.mismatch.got) == ((2, 5), "1000")
    assert (result.mismatch.seed, result.mismatch.regime) == (1, "normal")
    assert [check.status for check in result.workloads] == [Status.INCORRECT]


def test_a_failure_on_a_hidden_seed_does_not_name_it(problem: Problem, settings: Settings) -> None:
    hidden = {case.regime for case in _batch(problem, "full").cases if case.hidden}

    def spoil(request: ExecutionRequest, outputs: Arrays) -> None:
        if request.schedule_seed >= 4:
            outputs["y_bf16"][0, 0] = 7

    result = _run(problem, settings, spoil)
    assert result.mismatch is not None
    assert result.mismatch.regime in hidden
    assert result.mismatch.seed is None
    assert result.mismatch.index is None
    assert "100" not in repr(result.diagnostics)


def test_an_element_that_follows_the_poison_is_unwritten(
    problem: Problem, settings: Settings
) -> None:
    def spoil(request: ExecutionRequest, outputs: Arrays) -> None:
        outputs["codes"][-1, 28:] = request.poison

    result = _run(problem, settings, spoil)
    assert result.status is Status.UNWRITTEN_OUTPUT
    assert result.mismatch is not None
    assert (result.mismatch.tensor, result.mismatch.row) == ("codes", 7)
    assert result.mismatch.wrong_elements == 8


def test_an_unwritten_code_under_a_zero_scale_is_found(
    problem: Problem, settings: Settings
) -> None:
    def skip_zero_blocks(request: ExecutionRequest, outputs: Arrays) -> None:
        zero = np.repeat(outputs["block_scale"].astype(np.float32) == 0, 8, axis=1)
        outputs["codes"][zero] = request.poison

    result = _run(problem, settings, skip_zero_blocks)
    assert result.status is Status.UNWRITTEN_OUTPUT
    assert result.mismatch is not None
    assert (result.mismatch.tensor, result.mismatch.regime) == ("codes", "zero_blocks")


def test_a_wrong_value_that_happens_to_be_the_poison_is_incorrect(
    problem: Problem, settings: Settings
) -> None:
    def spoil(request: ExecutionRequest, outputs: Arrays) -> None:
        outputs["y_bf16"].view(np.uint16)[1, 1] = 0xFFFF

    result = _run(problem, settings, spoil)
    assert result.status is Status.INCORRECT
    assert result.mismatch is not None
    assert result.mismatch.gate == "finite"


def test_an_inout_tensor_that_was_not_updated_is_incorrect(
    problem: Problem, settings: Settings
) -> None:
    def spoil(request: ExecutionRequest, outputs: Arrays) -> None:
        outputs["kept"][...] = request.inputs["kept"]

    result = _run(problem, settings, spoil)
    assert result.status is Status.INCORRECT
    assert result.mismatch is not None
    assert (result.mismatch.tensor, result.mismatch.gate) == ("kept", "exact")
    assert "before the launch" in str(result.diagnostics[0].hint)


def test_a_fault_of_the_candidate_is_passed_on_with_its_case(
    problem: Problem, settings: Settings
) -> None:
    result = run_cases(_batch(problem, "full"), NumpyDevice(status=Status.OUT_OF_BOUNDS), settings)
    assert result.status is Status.OUT_OF_BOUNDS
    assert "b8xh64, normal inputs, seed 1, schedule 0" in result.diagnostics[-1].message


def test_the_report_is_the_first_failing_case_whichever_ends_first(
    problem: Problem, settings: Settings
) -> None:
    def spoil(request: ExecutionRequest, outputs: Arrays) -> None:
        outputs["y_fp8"].reshape(-1)[request.schedule_seed] = 448

    one = _run(problem, settings, spoil)
    many = _run(problem, replace(settings, jobs=8), spoil)
    assert one.mismatch == many.mismatch
    assert one.mismatch is not None
    assert one.mismatch.index == (0, 0)


def test_a_kernel_that_hangs_has_a_gpu_for_one_run(problem: Problem, settings: Settings) -> None:
    device = NumpyDevice(status=Status.TIMEOUT, gpu=gpu_for_arch("sm_90a"))
    result = run_cases(_batch(problem, "full"), device, replace(settings, jobs=8))
    assert (result.status, len(device.requests)) == (Status.TIMEOUT, 1)


def test_counters_are_those_of_the_named_workload(problem: Problem, settings: Settings) -> None:
    class Counting(NumpyDevice):
        def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
            rows = request.program.plan.axes["B"]
            counters = ExecutionCounters(shared_load_bytes=rows)
            return replace(super().execute(request), counters=counters)

    result = run_cases(_batch(problem, "full"), Counting(), settings)
    assert result.counters is not None
    assert result.counters.shared_load_bytes == 16


def test_progress_names_each_case_once(problem: Problem, settings: Settings) -> None:
    seen: list[str] = []
    batch = replace(_batch(problem, "full"), progress=seen.append)
    run_cases(batch, NumpyDevice(), settings)
    assert len(seen) == len(batch.cases)
    assert seen[0] == f"1 of {len(seen)}: b8xh64, normal inputs, seed 1"
