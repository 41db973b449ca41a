"""The whole stage over a scripted timing device."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.errors import InfraError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status, Verdict
from kopt.tools.bench import whole_rows
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate
from kopt.tools.check.case_data import CaseData
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.stage import check_candidate
from kopt.tools.devices.device import Arrays, ExecutionRequest
from support.bench_cases import CANDIDATE, FakeCompiler
from support.scripted_timer import QUIET, Script, ScriptedTimer


@pytest.fixture
def request_(problem: Problem, compiler: FakeCompiler) -> BenchRequest:
    del compiler
    return BenchRequest(Case(problem, problem.workloads[0], CANDIDATE), seed=1)


def test_a_faster_candidate_is_faster_than_the_reference(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer(Script(candidate_us=4.0, reference_us=5.0))
    result = bench_candidate(request_, timer, settings)
    (comparison,) = result.comparisons
    assert (result.status, result.verdict) == (Status.PASSED, Verdict.FASTER)
    assert comparison.baseline.name == "reference"
    assert comparison.speedup == pytest.approx(1.25, rel=0.01)
    assert comparison.interval is not None
    assert comparison.interval[0] < 1.25 < comparison.interval[1]
    assert BenchResult.model_validate_json(result.model_dump_json(by_alias=True)) == result


def test_a_result_says_what_it_was_measured_on(request_: BenchRequest, settings: Settings) -> None:
    timer = ScriptedTimer(Script(noise=QUIET))
    result = bench_candidate(request_, timer, settings)
    assert result.gpu == timer.facts
    assert result.latency is not None
    assert result.latency.median_us == pytest.approx(4.0)
    assert (result.warm_us, result.null_kernel_us, result.copy_gb_s) == (2.0, 1.1, 3000.0)
    assert result.rotation is not None
    assert (result.rotation.sets, result.rotation.is_cold) == (8, True)
    assert result.state is not None
    assert result.state.sm_mhz == (1980, 1980)
    assert result.seed == 1


def test_what_is_flagged_in_the_binary_stands_in_the_result(
    request_: BenchRequest, settings: Settings, compiler: FakeCompiler
) -> None:
    compiler.flagged = ("kernel k reads the clock",)
    result = bench_candidate(request_, ScriptedTimer(), settings)
    assert result.verdict is not None
    assert [note.message for note in result.diagnostics if note.severity == "warning"] == [
        "in the candidate's code: kernel k reads the clock"
    ]


def test_repeated_measurements_meet_different_inputs(
    request_: BenchRequest, settings: Settings
) -> None:
    inputs: set[bytes] = set()
    for seed in range(8):
        timer = ScriptedTimer(Script(noise=QUIET))
        bench_candidate(replace(request_, seed=seed), timer, settings)
        inputs.add(timer.sessions[-1].inputs["x"].tobytes())
    assert len(inputs) > 1


def test_a_wrong_candidate_is_not_timed(request_: BenchRequest, settings: Settings) -> None:
    def spoil(request: ExecutionRequest, outputs: Arrays) -> None:
        outputs["y_bf16"][:, 60:] = 0

    timer = ScriptedTimer(Script(spoil=spoil))
    result = bench_candidate(request_, timer, settings)
    assert (result.status, result.verdict) == (Status.INCORRECT, None)
    assert (result.comparisons, result.latency) == ((), None)
    assert timer.sessions == []


def test_a_candidate_that_is_wrong_on_the_timed_inputs_alone_is_not_timed(
    request_: BenchRequest, settings: Settings
) -> None:
    seen: list[bytes] = []

    def spoil(request: ExecutionRequest, outputs: Arrays) -> None:
        seen.append(request.inputs["x"].tobytes())
        if seen[-1] != seen[0]:
            outputs["y_bf16"][0, 0] = 99

    timer = ScriptedTimer(Script(spoil=spoil))
    result = bench_candidate(request_, timer, settings)
    assert (result.status, result.check.status) == (Status.INCORRECT, Status.INCORRECT)
    assert result.check.mismatch is not None
    assert result.check.mismatch.seed is None
    assert timer.sessions == []


def test_a_source_that_does_not_compile_is_its_status(
    request_: BenchRequest, settings: Settings, compiler: FakeCompiler
) -> None:
    compiler.status[CANDIDATE.name] = Status.COMPILE_ERROR
    result = bench_candidate(request_, ScriptedTimer(), settings)
    assert (result.status, result.verdict) == (Status.COMPILE_ERROR, None)
    assert result.diagnostics[0].line == 3


def test_a_given_check_is_not_repeated(request_: BenchRequest, settings: Settings) -> None:
    timer = ScriptedTimer()
    checked = check_candidate(_check_request(request_), timer, settings)
    before = len(timer.executions)
    result = bench_candidate(replace(request_, checked=checked), timer, settings)
    assert result.status is Status.PASSED
    # both poisons on the timed inputs, for the candidate and the reference kernel
    assert len(timer.executions) - before == 4


def test_a_check_of_another_candidate_is_refused(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer()
    checked = check_candidate(_check_request(request_), timer, settings)
    other = replace(CANDIDATE, source=CANDIDATE.source + "// more\n")
    with pytest.raises(ToolError, match="the check is of candidate"):
        case = replace(request_.case, candidate=other)
        bench_candidate(replace(request_, case=case, checked=checked), timer, settings)


def test_a_check_with_other_tune_values_is_refused(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer()
    checked = check_candidate(_check_request(request_), timer, settings)
    with pytest.raises(ToolError, match="the check is of tune"):
        case = request_.case.with_tune({"LANES": 64})
        bench_candidate(replace(request_, case=case, checked=checked), timer, settings)


def test_a_candidate_that_faults_when_timed_has_that_status(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer(Script(candidate_fails_at=90))
    result = bench_candidate(request_, timer, settings)
    assert (result.status, result.verdict) == (Status.OUT_OF_BOUNDS, None)
    assert result.diagnostics[-1].message == "scripted fault"


def test_a_fault_without_a_name_is_pinned_on_the_side_that_fails_alone(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer(Script(candidate_fails_at=20, names_side=False))
    result = bench_candidate(request_, timer, settings)
    assert result.status is Status.OUT_OF_BOUNDS
    assert [len(session.sides) for session in timer.sessions[1:]] == [1]


def test_a_fault_that_no_side_repeats_is_the_machines(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer(Script(candidate_fails_at=90, names_side=False))
    with pytest.raises(InfraError, match="no side fails alone"):
        bench_candidate(request_, timer, settings)


def test_a_wrong_reference_kernel_is_the_problems_fault(
    request_: BenchRequest, settings: Settings
) -> None:
    def spoil(request: ExecutionRequest, outputs: Arrays) -> None:
        outputs["y_bf16"][:] = 0

    with pytest.raises(ToolError, match=r"reference\.cu cannot be a baseline.*incorrect"):
        bench_candidate(request_, ScriptedTimer(Script(spoil_reference=spoil)), settings)


def test_an_impossible_time_is_flagged_and_no_speedup_reported(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer(Script(candidate_us=1e-4, noise=QUIET))
    result = bench_candidate(request_, timer, settings)
    assert result.verdict is Verdict.IMPOSSIBLE
    assert (result.comparisons[0].speedup, result.comparisons[0].interval) == (None, None)
    assert any("shorter than the memory needs" in note.message for note in result.diagnostics)


def test_a_short_time_from_a_warm_cache_is_not_impossible(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer(Script(candidate_us=1e-4, noise=QUIET, over_l2=1.5))
    result = bench_candidate(request_, timer, settings)
    assert result.verdict is Verdict.FASTER
    assert any("partly warm" in note.message for note in result.diagnostics)


@pytest.mark.parametrize("pairs", [(50, 1600), (100, 3200), (400, 200)])
def test_pairs_out_of_range_are_refused(
    request_: BenchRequest, settings: Settings, pairs: tuple[int, int]
) -> None:
    with pytest.raises(ToolError, match="allowed"):
        bench_candidate(
            replace(request_, min_pairs=pairs[0], max_pairs=pairs[1]), ScriptedTimer(), settings
        )


def test_a_seed_repeats_the_order_and_another_changes_it(
    request_: BenchRequest, settings: Settings
) -> None:
    orders = [
        _replayed(replace(request_, seed=seed), settings.home / name, settings)
        for seed, name in ((1, "a"), (1, "b"), (2, "c"))
    ]
    assert orders[0] == orders[1]
    assert orders[0] != orders[2]


def _replayed(request: BenchRequest, home: Path, settings: Settings) -> list[tuple[int, ...]]:
    timer = ScriptedTimer()
    bench_candidate(request, timer, replace(settings, home=home))
    return timer.replayed


def _check_request(request: BenchRequest) -> CheckRequest:
    return CheckRequest(case=request.case, level="quick", arch="sm_90a")


def test_a_candidate_whose_other_rows_are_far_from_the_reference_is_not_timed(
    request_: BenchRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared: list[tuple[Arrays, Arrays]] = []

    def far(_: CaseData, outputs: Arrays, others: Arrays) -> bool:
        compared.append((outputs, others))
        return True

    monkeypatch.setattr(whole_rows, "far_rows", far)
    timer = ScriptedTimer()
    result = bench_candidate(request_, timer, settings)
    assert (result.status, result.verdict) == (Status.INCORRECT, None)
    assert "reference kernel" in result.diagnostics[-1].message
    assert compared and timer.sessions == []


def test_the_reference_kernel_as_the_candidate_is_executed_once_for_both(
    request_: BenchRequest, settings: Settings
) -> None:
    def executions(request: BenchRequest) -> list[str]:
        timer = ScriptedTimer()
        bench_candidate(request, timer, settings)
        return [one.program.candidate.name for one in timer.executions]

    reference = read_candidate(request_.case.problem.folder / "reference.cu")
    own = executions(replace(request_, case=replace(request_.case, candidate=reference)))
    both = executions(request_)
    assert both.count("reference.cu") > 0
    assert len(own) == both.count("mine.cu")
