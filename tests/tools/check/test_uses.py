"""Workloads that are there to be timed: passed over on the simulator, and said so everywhere."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import gpu_for_arch, load_gpus
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckResult
from kopt.kernels.problem import Problem, Use
from kopt.kernels.status import Status
from kopt.server.find_case import find_problems
from kopt.server.views.check_view import check_view
from kopt.tools.check import race_check, stage
from kopt.tools.check.cases import Seeds, plan_cases
from kopt.tools.check.request import CheckRequest, make_plans
from kopt.tools.check.run_cases import CaseBatch
from kopt.tools.check.stage import check_candidate
from kopt.tools.check.uses import run_workloads
from kopt.tools.facts.check_facts import check_facts, check_summary
from support.bench_cases import SOURCE, FakeCompiler
from support.synthetic_check import NumpyDevice, plans_for, synthetic_problem
from support.tiny_problem import write_tiny_problem

SHAPES = ((64, 64), (8, 64))


def _problem(folder: Path, uses: tuple[Use, ...] = ("time", "check")) -> Problem:
    """Return a problem whose workloads, the larger one first, have these uses."""
    problem = synthetic_problem(folder, SHAPES)
    workloads = tuple(
        one.model_copy(update={"use": use})
        for one, use in zip(problem.workloads, uses, strict=True)
    )
    return problem.model_copy(update={"workloads": workloads})


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CheckRequest:
    """Return a full check that is named by the workload for checking."""
    monkeypatch.setattr(stage, "compile_candidate", FakeCompiler())
    problem = _problem(tmp_path / "problem")
    case = Case(problem, problem.workloads[1], Candidate(SOURCE))
    return CheckRequest(case=case, level="full")


@pytest.fixture
def result(request_: CheckRequest, tmp_path: Path) -> CheckResult:
    return check_candidate(request_, NumpyDevice(name="sim"), Settings(home=tmp_path / "home"))


def test_the_simulator_runs_what_is_there_to_be_checked(result: CheckResult) -> None:
    assert result.status is Status.PASSED
    assert [one.workload for one in result.workloads] == ["b8xh64"]
    assert result.passed_over == ("b64xh64",)


def test_a_simulator_that_stands_for_a_gpu_is_still_one(
    request_: CheckRequest, tmp_path: Path
) -> None:
    device = NumpyDevice(name="sim:H200", gpu=gpu_for_arch("sm_90a"))
    found = check_candidate(request_, device, Settings(home=tmp_path / "home"))
    assert (found.status, found.passed_over) == (Status.PASSED, ("b64xh64",))


def test_every_text_of_a_check_names_what_was_passed_over(result: CheckResult) -> None:
    screen = Console(file=io.StringIO(), width=200)
    for part in check_view("mine.cu", result):
        screen.print(part)
    assert isinstance(screen.file, io.StringIO)
    texts = (screen.file.getvalue(), str(check_facts(result, "concise")), check_summary(result))
    assert all("b64xh64" in text and "GPU checks it" in text for text in texts)


def test_a_kernel_that_only_a_gpu_runs_is_refused_with_those_to_check_instead(
    request_: CheckRequest, tmp_path: Path
) -> None:
    asked = replace(request_, case=request_.case.at(request_.case.problem.workloads[0]))
    with pytest.raises(ToolError, match="synthetic_b64xh64 is `use: time`") as caught:
        check_candidate(asked, NumpyDevice(name="sim"), Settings(home=tmp_path / "home"))
    assert "check synthetic_b8xh64 here, or name a GPU" in str(caught.value)


def test_a_gpu_runs_both(request_: CheckRequest) -> None:
    plans = make_plans(request_, gpu_for_arch("sm_90a"))
    on_gpu = run_workloads(plans, NumpyDevice(gpu=load_gpus()["H100"]))
    assert {one.name for one in on_gpu} == {"b64xh64", "b8xh64"}


def test_what_is_there_to_be_timed_has_a_visible_and_a_hidden_seed_and_comes_last(
    tmp_path: Path,
) -> None:
    problem = _problem(tmp_path, ("check", "time"))  # the smaller one is there to be timed
    cases = plan_cases(problem, problem.workloads, "full", Seeds((1, 2, 3), (7, 8)))
    timed = [one for one in cases if one.workload.use == "time"]
    assert timed == list(cases[-len(timed) :])
    assert [(one.seed, one.regime) for one in timed] == [
        (1, "normal"),
        (7, "normal"),
        (7, "assorted"),
    ]


def test_without_rows_large_cases_meet_many_scales_instead_of_rows_of_all_regimes(
    tmp_path: Path,
) -> None:
    problem = _problem(tmp_path, ("time", "check")).model_copy(update={"row_axis": None})
    cases = plan_cases(problem, problem.workloads, "full", Seeds((1,), (7,)))
    assert [case.regime for case in cases[-2:]] == ["mixed", "zero_blocks"]
    assert all(one.regime != "assorted" for one in cases)


def test_no_case_has_a_regime_that_the_oracle_does_not_serve(tmp_path: Path) -> None:
    problem = _problem(tmp_path)
    for regimes in (("normal",), ("normal", "mixed", "channels")):
        cases = plan_cases(problem, problem.workloads, "full", Seeds((1, 2), (7, 8)), regimes)
        assert {one.regime for one in cases} <= {*regimes, "assorted"}
        assert {one.workload.name for one in cases} == {"b64xh64", "b8xh64"}


def test_the_race_check_leaves_out_what_only_a_gpu_runs(request_: CheckRequest) -> None:
    problem = request_.case.problem
    seeds = Seeds((1,), (7,))
    every = plan_cases(problem, problem.workloads, "full", seeds)
    batch = CaseBatch(request_.case, plans_for(problem), {}, every)
    assert {one.workload.name for one in race_check.race_cases(batch)} == {"b8xh64"}
    timed = tuple(one for one in every if one.workload.use == "time")
    assert race_check.race_cases(replace(batch, cases=timed)) == ()


def test_what_is_there_to_be_checked_is_timed_only_where_it_is_named(
    request_: CheckRequest,
) -> None:
    case = request_.case  # named by the workload for checking
    assert [one.name for one in case.timed_domain] == ["b64xh64"]
    assert case.at_timed.workload.name == "b64xh64"
    assert [one.name for one in case.timed_from_here] == ["b8xh64", "b64xh64"]
    official = case.at(case.problem.workloads[0])
    assert [one.name for one in official.timed_from_here] == ["b64xh64"]


def test_a_domain_of_checked_workloads_alone_is_timed(tmp_path: Path) -> None:
    problem = _problem(tmp_path, ("check", "check"))
    case = Case(problem, problem.workloads[0], Candidate(SOURCE))
    assert case.timed_domain == problem.workloads


def test_a_list_of_all_kernels_leaves_out_those_to_be_checked(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    folder = write_tiny_problem(tmp_path / "mine")
    yaml = folder / "problem.yaml"
    yaml.write_text(yaml.read_text().replace("H: 64}}", "H: 64}, use: check}"))
    settings = Settings(home=tmp_path / "home", problems=tmp_path / "mine")

    def own(parts: tuple[str, ...]) -> list[str]:
        return [
            kernel
            for problem in find_problems(parts, settings)
            for kernel in problem.kernel_ids
            if problem.name == "scale_rows"
        ]

    assert own(()) == ["scale_rows_b32xh256"]
    assert own(("scale_rows_b8",)) == ["scale_rows_b8xh64"]
