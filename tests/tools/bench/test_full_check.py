"""What stands behind `faster`: a full check after the timing, paid once for the same content."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status, Verdict
from kopt.server.opened_device import OpenedDevice
from kopt.server.work import stages
from kopt.tools.bench.full_check import keep_outcome
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.stage import check_candidate
from kopt.tools.devices.device import Arrays, ExecutionRequest
from kopt.tools.facts.bench_facts import bench_facts, doubts
from kopt.tools.sanitize import stage as sanitize_stage
from support.bench_cases import CANDIDATE, FakeCompiler, bench_problem
from support.scripted_timer import Script, ScriptedTimer
from support.synthetic_check import NumpyDevice

pytestmark = pytest.mark.slow  # full checks
FASTER = Script(candidate_us=4.0, reference_us=5.0)


@pytest.fixture
def request_(problem: Problem, compiler: FakeCompiler) -> BenchRequest:
    del compiler
    return BenchRequest(Case(problem, problem.workloads[0], CANDIDATE), seed=1, proves=True)


def test_faster_without_proof_says_that_the_check_was_quick(
    request_: BenchRequest, settings: Settings
) -> None:
    result = bench_candidate(replace(request_, proves=False), ScriptedTimer(FASTER), settings)
    assert (result.verdict, result.checked) == (Verdict.FASTER, "quick")
    facts = bench_facts(result, "concise")
    assert facts["checked"] == "quick"
    assert facts["answer"].endswith("; quick check only: `kopt check --level full` decides")


def test_faster_has_a_full_check_behind_it_and_pays_it_once(
    request_: BenchRequest, settings: Settings
) -> None:
    first, second = ScriptedTimer(FASTER), ScriptedTimer(FASTER)
    result = bench_candidate(request_, first, settings)
    assert (result.verdict, result.checked, result.check.level) == (Verdict.FASTER, "full", "full")
    again = bench_candidate(request_, second, settings)
    assert (again.verdict, again.checked, again.check.level) == (Verdict.FASTER, "full", "quick")
    assert result.race_check is not None and result.race_check.workloads == ("b8xh64",)
    assert again.race_check == result.race_check
    assert len(second.executions) < len(first.executions)


@pytest.mark.parametrize("changed", ["candidate", "oracle", "tune"])
def test_other_content_is_checked_anew(
    request_: BenchRequest, settings: Settings, changed: str
) -> None:
    bench_candidate(request_, ScriptedTimer(FASTER), settings)
    case = request_.case
    if changed == "candidate":
        case = replace(case, candidate=Candidate(CANDIDATE.source + "// more\n", "mine.cu"))
    elif changed == "oracle":
        oracle = case.problem.folder / "oracle.py"
        oracle.write_text(oracle.read_text() + "# other\n")
    else:
        case = replace(case, tune={"LANES": 64})
    result = bench_candidate(replace(request_, case=case), ScriptedTimer(FASTER), settings)
    assert (result.checked, result.check.level) == ("full", "full")


def test_what_the_full_check_refuses_has_its_status_and_no_verdict(
    request_: BenchRequest, settings: Settings
) -> None:
    def spoil(request: ExecutionRequest, outputs: Arrays) -> None:
        if request.schedule_seed > 0:  # of a full check only
            outputs["y_bf16"][0, 0] = 1e4

    for _ in range(2):  # a failure is not kept
        result = bench_candidate(request_, ScriptedTimer(replace(FASTER, spoil=spoil)), settings)
        assert (result.status, result.verdict) == (Status.INCORRECT, None)
        assert (result.comparisons, result.check.level) == ((), "full")


def test_faster_without_a_race_check_is_doubted(
    request_: BenchRequest, settings: Settings, simulator: NumpyDevice
) -> None:
    simulator.status = Status.UNSUPPORTED_ON_SIM
    result = bench_candidate(request_, ScriptedTimer(FASTER), settings)
    assert (result.verdict, result.checked) == (Verdict.FASTER, "full")
    (doubt,) = (one for one in doubts(result) if "race" in one)
    assert doubt.startswith("no race check stands behind this result: unsupported_on_sim")


def test_what_the_simulator_finds_takes_faster_back(
    request_: BenchRequest, settings: Settings, simulator: NumpyDevice
) -> None:
    simulator.status = Status.DATA_RACE
    result = bench_candidate(request_, ScriptedTimer(FASTER), settings)
    assert (result.status, result.verdict) == (Status.DATA_RACE, None)


def test_a_slower_candidate_is_not_checked_further(
    request_: BenchRequest, settings: Settings
) -> None:
    script = Script(candidate_us=6.0, reference_us=5.0)
    result = bench_candidate(request_, ScriptedTimer(script), settings)
    assert (result.verdict, result.checked) == (Verdict.SLOWER, "quick")


@pytest.mark.parametrize("shapes", [((8, 64),), ((8, 64), (4, 64))])
def test_a_full_check_that_was_asked_for_is_not_paid_again(
    tmp_path: Path, compiler: FakeCompiler, settings: Settings, shapes: tuple[tuple[int, int], ...]
) -> None:
    del compiler
    problem, timer = bench_problem(tmp_path / "problem", shapes=shapes), ScriptedTimer(FASTER)
    checked = Case(problem, problem.workloads[-1], CANDIDATE)
    asked = CheckRequest(checked, "full", arch=timer.facts.arch)
    keep_outcome(asked, check_candidate(asked, timer, settings), timer, settings)
    timed = BenchRequest(Case(problem, problem.workloads[0], CANDIDATE), seed=1, proves=True)
    result = bench_candidate(timed, timer, settings)
    assert (result.verdict, result.checked, result.check.level) == (Verdict.FASTER, "full", "quick")


@pytest.mark.parametrize("less", ["quick", "other seeds", "failed"])
def test_less_than_a_full_check_that_passed_proves_nothing(
    request_: BenchRequest, settings: Settings, less: str
) -> None:
    timer = ScriptedTimer(FASTER)
    full = replace(request_.quick_check(timer.facts.arch), level="full")
    asked = {"quick": replace(full, level="quick"), "other seeds": replace(full, seeds=(7,))}
    check = check_candidate(asked.get(less, full), timer, settings)
    if less == "failed":
        check = check.model_copy(update={"status": Status.INCORRECT})
    keep_outcome(asked.get(less, full), check, timer, settings)
    result = bench_candidate(request_, timer, settings)
    assert (result.checked, result.check.level) == ("full", "full")


def test_the_stage_keeps_that_a_full_check_on_a_gpu_was_passed(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer(FASTER)
    full = replace(request_.quick_check(timer.facts.arch), level="full")
    assert stages.check(full, OpenedDevice(timer, timer, full.arch), settings).level == "full"
    assert bench_candidate(request_, timer, settings).check.level == "quick"


def test_a_full_check_that_failed_since_takes_back_one_that_was_passed(
    request_: BenchRequest, settings: Settings
) -> None:
    timer = ScriptedTimer(FASTER)
    full = replace(request_.quick_check(timer.facts.arch), level="full")
    passed = check_candidate(full, timer, settings)
    keep_outcome(full, passed, timer, settings)
    keep_outcome(full, passed.model_copy(update={"status": Status.INCORRECT}), timer, settings)
    assert bench_candidate(request_, timer, settings).check.level == "full"


def test_what_the_sanitizer_refutes_is_not_kept_as_passed(
    request_: BenchRequest, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuted(*_: object) -> SimpleNamespace:
        return SimpleNamespace(status=Status.INCORRECT)

    monkeypatch.setattr(sanitize_stage, "sanitize", refuted)
    timer = ScriptedTimer(FASTER)
    full = replace(request_.quick_check(timer.facts.arch), level="full")
    opened = OpenedDevice(timer, timer, full.arch)
    assert stages.check(full, opened, settings, sanitized=True).status is Status.INCORRECT
    assert bench_candidate(request_, timer, settings).check.level == "full"
