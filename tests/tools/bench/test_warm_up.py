"""What an oracle imports first: asked for where results will be computed, and never decisive."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate
from kopt.tools.check.stage import check_candidate
from support.bench_cases import CANDIDATE, FakeCompiler
from support.scripted_timer import ScriptedTimer

WARM = """
def warm_up():
    from pathlib import Path
    (Path(__file__).parent / "warm").touch()
    raise RuntimeError("it is found out later, where the oracle computes")
"""


@pytest.fixture
def request_(problem: Problem, compiler: FakeCompiler) -> BenchRequest:
    del compiler
    with (problem.folder / "oracle.py").open("a", encoding="utf-8") as file:
        file.write(WARM)
    return BenchRequest(Case(problem, problem.workloads[0], CANDIDATE), seed=1)


def _is_warm(request: BenchRequest) -> bool:
    return Path(request.case.problem.folder, "warm").exists()


def test_a_benchmark_warms_the_oracle_up(request_: BenchRequest, settings: Settings) -> None:
    assert bench_candidate(request_, ScriptedTimer(), settings).status is Status.PASSED
    assert _is_warm(request_)


@pytest.mark.parametrize("level", ["quick", "full"])
def test_a_full_check_does_and_a_quick_one_which_may_compute_nothing_does_not(
    request_: BenchRequest, settings: Settings, level: str
) -> None:
    timer = ScriptedTimer()
    asked = request_.quick_check(timer.facts.arch)
    if level == "full":
        asked = replace(asked, level="full")
    assert check_candidate(asked, timer, settings).status is Status.PASSED
    assert _is_warm(request_) is (level == "full")
