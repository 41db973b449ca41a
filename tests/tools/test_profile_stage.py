"""A profile joins static facts, counts, floors and the estimate, and says what is unavailable."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.counters import BufferTraffic, ExecutionCounters
from kopt.kernels.profile_result import ProfileResult
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Provenance, Status
from kopt.tools.cuda.toolchain import FoundToolchain
from kopt.tools.devices.device import ExecutionOutcome, ExecutionRequest, Program
from kopt.tools.profiling.stage import ProfileDevices, ProfileRequest, profile_candidate
from support.tiny_problem import BODY, HEADER, tiny_problem

X_BYTES = 32 * 256 * 4
COUNTERS = ExecutionCounters(
    traffic={
        "x": BufferTraffic(
            load_bytes=2 * X_BYTES,
            store_bytes=0,
            sectors_per_request=4.0,
            ideal_sectors_per_request=4.0,
        ),
        "out": BufferTraffic(load_bytes=0, store_bytes=X_BYTES),
    }
)


class ScriptedDevice:
    """A device that gives one prepared outcome and keeps what it was asked."""

    name = "scripted"
    gpu = None

    def __init__(self, outcome: ExecutionOutcome) -> None:
        self.outcome = outcome
        self.requests: list[ExecutionRequest] = []

    def prepare(self, program: Program) -> ExecutionOutcome | None:
        raise AssertionError("one execution needs no preparation")

    def execute(self, request: ExecutionRequest) -> ExecutionOutcome:
        self.requests.append(request)
        return self.outcome


@pytest.fixture
def asked(tmp_path: Path, toolchain: FoundToolchain) -> ProfileRequest:
    problem = tiny_problem(tmp_path)
    return ProfileRequest(
        case=Case(problem, problem.workload("b32xh256"), Candidate(HEADER + BODY)), arch="sm_90a"
    )


def test_profile_without_a_device_has_facts_floors_and_an_estimate(
    asked: ProfileRequest, settings: Settings
) -> None:
    result = profile_candidate(asked, settings)
    assert (result.status, result.kernel, result.gpu) == (
        Status.PASSED,
        "scale_rows_b32xh256",
        "H100",
    )
    (launch,) = result.launches
    assert (launch.grid, launch.block) == ((32, 1, 1), (128, 1, 1))
    assert launch.resources.instruction_mix["ldg_32"] >= 1
    assert launch.occupancy.theoretical_occupancy == 1.0
    assert result.estimate is not None
    assert result.estimate.provenance is Provenance.ESTIMATED
    assert result.floor_fraction is not None
    assert 0 < result.floor_fraction < 1
    assert result.suspects


def test_what_was_not_counted_is_unavailable_and_not_zero(
    asked: ProfileRequest, settings: Settings
) -> None:
    result = profile_candidate(asked, settings)
    assert result.counters is None
    assert result.device is None
    assert [one.load_bytes for one in result.traffic] == [None, None, None]
    assert result.estimate is not None
    assert any("counted accesses" in text for text in result.estimate.missing)


def test_counted_bytes_stand_beside_the_needed_ones(
    asked: ProfileRequest, settings: Settings
) -> None:
    device = ScriptedDevice(
        ExecutionOutcome(status=Status.PASSED, counters=COUNTERS, sandbox="landlock")
    )
    result = profile_candidate(asked, settings, ProfileDevices(device))
    assert (result.device, result.sandbox) == ("scripted", "landlock")
    x = next(one for one in result.traffic if one.name == "x")
    assert (x.needed_read_bytes, x.load_bytes) == (X_BYTES, 2 * X_BYTES)
    assert result.counters == COUNTERS


def test_device_gets_the_inputs_of_the_workload(asked: ProfileRequest, settings: Settings) -> None:
    device = ScriptedDevice(ExecutionOutcome(status=Status.PASSED, counters=COUNTERS))
    profile_candidate(asked, settings, ProfileDevices(device))
    (execution,) = device.requests
    assert execution.inputs["x"].shape == (32, 256)
    assert execution.program.plan.workload == "b32xh256"


def test_unsupported_candidate_keeps_its_static_profile(
    asked: ProfileRequest, settings: Settings
) -> None:
    why = Diagnostic(message="raw PTX", line=12)
    outcome = ExecutionOutcome(status=Status.UNSUPPORTED_ON_SIM, diagnostics=(why,))
    result = profile_candidate(asked, settings, ProfileDevices(ScriptedDevice(outcome)))
    assert result.status is Status.PASSED
    assert result.counters is None
    assert why in result.diagnostics
    assert result.estimate is not None


def test_fault_under_execution_is_the_status(asked: ProfileRequest, settings: Settings) -> None:
    outcome = ExecutionOutcome(status=Status.OUT_OF_BOUNDS, counters=COUNTERS)
    result = profile_candidate(asked, settings, ProfileDevices(ScriptedDevice(outcome)))
    assert result.status is Status.OUT_OF_BOUNDS
    assert result.counters is None
    assert result.launches


def test_candidate_that_does_not_compile_has_only_its_floors(
    asked: ProfileRequest, settings: Settings
) -> None:
    broken = ProfileRequest(
        case=Case(
            asked.case.problem,
            asked.case.workload,
            Candidate(HEADER + BODY.replace("* scale;", "* scales;")),
        ),
        arch="sm_90a",
    )
    device = ScriptedDevice(ExecutionOutcome(status=Status.PASSED))
    result = profile_candidate(broken, settings, ProfileDevices(device))
    assert result.status is Status.COMPILE_ERROR
    assert result.diagnostics
    assert (result.estimate, result.launches) == (None, ())
    assert result.roofline.memory_floor_us > 0
    assert device.requests == []


def test_tune_values_reach_the_plan(asked: ProfileRequest, settings: Settings) -> None:
    wide = ProfileRequest(
        case=Case(asked.case.problem, asked.case.workload, asked.case.candidate, {"BLOCK": 256}),
        arch="sm_90a",
    )
    result = profile_candidate(wide, settings)
    assert result.launches[0].block == (256, 1, 1)
    assert result.chosen_tune == {"BLOCK": 256}


def test_tune_values_that_are_the_defaults_are_not_chosen(
    asked: ProfileRequest, settings: Settings
) -> None:
    default = replace(asked, case=replace(asked.case, tune={"BLOCK": 128}))
    assert profile_candidate(default, settings).chosen_tune == {}


def test_json_names_its_format_and_comes_back_the_same(
    asked: ProfileRequest, settings: Settings
) -> None:
    result = profile_candidate(asked, settings)
    text = result.model_dump_json(by_alias=True)
    assert '"schema":"kopt.profile/1"' in text
    assert ProfileResult.model_validate_json(text) == result
