"""The benchmark on the simulator."""

from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
from pydantic import ValidationError

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchResult, Latency
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.status import Provenance, Status, Verdict
from kopt.tools.bench.estimated import bench_estimated
from kopt.tools.bench.request import BenchRequest
from kopt.tools.sim.device import SimDevice
from support.shared_caches import share_caches
from support.tiny_problem import BODY, HEADER, tiny_candidate, tiny_problem


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory, shared_caches: Path) -> Settings:
    """One home for all."""
    home = share_caches(tmp_path_factory.mktemp("kopt") / "home", shared_caches)
    return Settings(home=home, jobs=2)


@pytest.fixture
def own_problem(tmp_path: Path) -> Problem:
    return tiny_problem(tmp_path)


def _bench(request: BenchRequest, settings: Settings) -> BenchResult:
    return bench_estimated(request, "sm_90a", SimDevice(settings), settings)


def test_the_reference_kernel_against_itself_has_ratio_one(
    own_problem: Problem, settings: Settings
) -> None:
    request = BenchRequest(Case(own_problem, own_problem.workloads[0], tiny_candidate()))
    result = _bench(request, settings)
    (comparison,) = result.comparisons
    assert (result.status, result.verdict) == (Status.PASSED, Verdict.ESTIMATED)
    assert (comparison.speedup, comparison.interval) == (1.0, None)
    assert comparison.provenance is Provenance.ESTIMATED
    assert (result.gpu, result.device, result.seed) == (None, "sim", None)
    assert result.latency is not None
    assert (result.latency.provenance, result.latency.replays) == (Provenance.ESTIMATED, 0)


@pytest.mark.slow  # compiles and estimates two kernels
def test_assumptions_of_an_estimate_are_told(own_problem: Problem, settings: Settings) -> None:
    waiting = """
    float left = x[blockIdx.x * H + h];
    while (left > 1.0f) left *= 0.5f;
    if (left == 7.0f) out[0] = left;
  }
}
"""
    body = BODY.replace("  }\n}\n", waiting)
    assert body != BODY
    case = Case(own_problem, own_problem.workloads[0], Candidate(HEADER + body))
    (note,) = _bench(BenchRequest(case), settings).diagnostics
    assert note.severity == "note"
    assert note.message.startswith("not known to the estimate: how often a loop runs")


def test_an_estimate_has_no_spread_in_json(own_problem: Problem, settings: Settings) -> None:
    request = BenchRequest(Case(own_problem, own_problem.workloads[0], tiny_candidate()))
    document = _bench(request, settings).model_dump(mode="json")
    for latency in (document["latency"], document["comparisons"][0]["baseline_latency"]):
        assert latency["median_us"] > 0
        assert [latency[part] for part in ("p10_us", "p90_us", "min_us")] == [None] * 3


@pytest.mark.parametrize(
    ("provenance", "spread"),
    [
        (Provenance.MEASURED, {}),
        (Provenance.MEASURED, {"p10_us": 1.0, "p90_us": 3.0}),
        (Provenance.ESTIMATED, {"p10_us": 1.0, "p90_us": 3.0, "min_us": 1.0}),
        (Provenance.ESTIMATED, {"min_us": 1.0}),
    ],
)
def test_a_time_has_a_spread_if_and_only_if_it_was_measured(
    provenance: Literal[Provenance.MEASURED, Provenance.ESTIMATED], spread: dict[str, float]
) -> None:
    with pytest.raises(ValidationError, match="of a measured time, and of no other"):
        Latency.model_validate({"median_us": 2.0, "replays": 0, "provenance": provenance, **spread})


def test_progress_says_which_kernel_is_the_reference(
    own_problem: Problem, settings: Settings
) -> None:
    lines: list[str] = []
    request = BenchRequest(
        Case(own_problem, own_problem.workloads[0], tiny_candidate()), progress=lines.append
    )
    _bench(request, settings)
    assert lines[0] == "compiling"
    assert "reference kernel: compiling" in lines
    assert len(set(lines)) == len(lines)


@pytest.mark.slow  # compiles and estimates two kernels
def test_a_slower_candidate_has_a_smaller_ratio(own_problem: Problem, settings: Settings) -> None:
    slow = tiny_candidate(HEADER.replace("block: BLOCK", "block: 1"))
    request = BenchRequest(Case(own_problem, own_problem.workloads[0], slow))
    speedup = _bench(request, settings).comparisons[0].speedup
    assert speedup is not None
    assert speedup < 0.9


def test_a_wrong_candidate_has_no_estimate(own_problem: Problem, settings: Settings) -> None:
    wrong = replace(tiny_candidate(), source=HEADER + BODY.replace("* scale", "+ scale"))
    result = _bench(BenchRequest(Case(own_problem, own_problem.workloads[0], wrong)), settings)
    assert (result.status, result.verdict) == (Status.INCORRECT, None)
    assert result.comparisons == ()


def test_a_wrong_reference_kernel_is_the_problems_fault(
    own_problem: Problem, settings: Settings
) -> None:
    path = own_problem.folder / "reference.cu"
    path.write_text(path.read_text().replace("* scale", "+ scale"))
    request = BenchRequest(Case(own_problem, own_problem.workloads[0], tiny_candidate()))
    with pytest.raises(ToolError, match=r"reference\.cu cannot be compared with: incorrect"):
        _bench(request, settings)
