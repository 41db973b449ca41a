"""A profile's time comes with the floor of its launches, the bandwidth and the device's name."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.profile_result import MeasuredTime
from kopt.kernels.roofline import workload_bytes
from kopt.kernels.status import Provenance, Status
from kopt.tools.cuda.compile_stage import compile_candidate
from kopt.tools.cuda.toolchain import FoundToolchain
from kopt.tools.devices.device import ExecutionOutcome
from kopt.tools.devices.timer import CandidateSide, EmptySide
from kopt.tools.profiling import counters
from kopt.tools.profiling.launchable import make_launchable
from kopt.tools.profiling.measure import measure_time
from kopt.tools.profiling.stage import ProfileDevices, ProfileRequest, profile_candidate
from support.compile_requests import request_for
from support.scripted_timer import FACTS, QUIET, Script, ScriptedTimer
from support.tiny_problem import BODY, HEADER

Measure = Callable[[ScriptedTimer], MeasuredTime | ExecutionOutcome]


@pytest.fixture
def measure(settings: Settings, toolchain: FoundToolchain, compile_problem: Problem) -> Measure:
    compiled = compile_candidate(request_for(compile_problem, HEADER + BODY, "sm_90a"), settings)
    workload = compile_problem.workload("b8xh64")
    case = Case(compile_problem, workload, Candidate(HEADER + BODY))

    def run(timer: ScriptedTimer) -> MeasuredTime | ExecutionOutcome:
        launchable = make_launchable(case, compiled, timer.gpu)
        return measure_time(launchable, workload_bytes(compile_problem, workload), timer)

    return run


def test_time_floor_and_bandwidth_are_measured(measure: Measure) -> None:
    found = measure(ScriptedTimer(Script(candidate_us=4.0, empty_us=1.5, noise=QUIET)))
    assert isinstance(found, MeasuredTime)
    assert (found.device, found.gpu) == ("cuda:0", FACTS)
    assert found.latency.median_us == pytest.approx(4.0)
    assert found.above_null_us == pytest.approx(2.5)
    moved_bytes = 2 * 8 * 64 * 4 + 64 * 2
    assert found.achieved_gb_s == pytest.approx(moved_bytes / 4.0e-6 / 1e9)
    assert found.copy_fraction == pytest.approx(found.achieved_gb_s / 3000.0)
    assert found.provenance is Provenance.MEASURED


def test_sides_are_the_candidate_and_empty_kernels_in_turn(measure: Measure) -> None:
    timer = ScriptedTimer()
    measure(timer)
    (session,) = timer.sessions
    assert [type(side) for side in session.sides] == [CandidateSide, EmptySide]
    assert set(timer.replayed) == {(0, 1, 1, 0)}
    assert sum(len(sequence) for sequence in timer.replayed) == 60


def test_candidate_that_faults_gives_its_outcome(measure: Measure) -> None:
    found = measure(ScriptedTimer(Script(candidate_fails_at=0)))
    assert isinstance(found, ExecutionOutcome)
    assert found.status is not Status.PASSED


def test_profile_on_a_gpu_joins_estimate_time_and_reason_for_missing_counters(
    settings: Settings,
    toolchain: FoundToolchain,
    compile_problem: Problem,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find(_: Settings) -> None:
        return None

    monkeypatch.setattr(counters, "find_ncu", find)
    result = profile_candidate(
        _request(compile_problem), settings, ProfileDevices(timing=ScriptedTimer())
    )
    assert result.status is Status.PASSED
    assert result.measured is not None
    assert result.estimate is not None
    assert result.hardware is not None
    assert result.hardware.provenance is Provenance.UNAVAILABLE
    assert result.bottleneck is not None
    assert result.gpu == "H100"


def test_counters_are_not_read_unless_asked_for(
    settings: Settings, toolchain: FoundToolchain, compile_problem: Problem
) -> None:
    request = _request(compile_problem, counters=False)
    result = profile_candidate(request, settings, ProfileDevices(timing=ScriptedTimer()))
    assert result.measured is not None
    assert result.hardware is None


def test_fault_under_timing_is_the_status_of_the_profile(
    settings: Settings, toolchain: FoundToolchain, compile_problem: Problem
) -> None:
    timer = ScriptedTimer(Script(candidate_fails_at=0))
    result = profile_candidate(_request(compile_problem), settings, ProfileDevices(timing=timer))
    assert result.status is not Status.PASSED
    assert (result.measured, result.hardware) == (None, None)
    assert result.diagnostics
    assert result.launches


def _request(problem: Problem, counters: bool = True) -> ProfileRequest:
    return ProfileRequest(
        case=Case(problem, problem.workload("b8xh64"), Candidate(HEADER + BODY)),
        arch="sm_90a",
        counters=counters,
    )


def test_cubin_that_is_timed_is_the_shipped_one(
    measure: Measure, settings: Settings, compile_problem: Problem
) -> None:
    timer = ScriptedTimer()
    measure(timer)
    side = timer.sessions[0].sides[0]
    assert isinstance(side, CandidateSide)
    assert Path(side.cubin_path).is_relative_to(settings.cubin_cache.absolute())
