"""What verdicts a planted effect gets, over twenty sessions with realistic noise."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.bench_result import Comparison
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.status import Verdict
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate
from support.bench_cases import CANDIDATE, FakeCompiler
from support.scripted_timer import Noise, Script, ScriptedTimer

pytestmark = pytest.mark.slow  # twenty sessions for each verdict
NOISE = Noise(white=0.008, drift=0.02, walk=0.01, outliers=0.02)


@pytest.fixture
def request_(problem: Problem, compiler: FakeCompiler) -> BenchRequest:
    del compiler
    return BenchRequest(Case(problem, problem.workloads[0], CANDIDATE))


def _comparisons(
    request: BenchRequest, settings: Settings, candidate_us: float, noise: Noise = NOISE
) -> list[Comparison]:
    """Return the result of twenty sessions, each with a floor of its own."""
    found: list[Comparison] = []
    for seed in range(20):
        script = Script(candidate_us=candidate_us, reference_us=4.0, noise=noise, seed=seed)
        own = replace(settings, home=Path(f"{settings.home}-{seed}"))
        result = bench_candidate(replace(request, seed=seed), ScriptedTimer(script), own)
        found.append(result.comparisons[0])
    return found


def test_one_per_cent_slower_is_called_slower_every_time(
    request_: BenchRequest, settings: Settings
) -> None:
    comparisons = _comparisons(request_, settings, 4.04)
    assert [comparison.verdict for comparison in comparisons] == [Verdict.SLOWER] * 20
    assert all(comparison.pairs <= 400 for comparison in comparisons)


def test_no_difference_is_inconclusive_every_time(
    request_: BenchRequest, settings: Settings
) -> None:
    comparisons = _comparisons(request_, settings, 4.0)
    assert [comparison.verdict for comparison in comparisons] == [Verdict.INCONCLUSIVE] * 20


def test_half_a_per_cent_is_never_called_the_wrong_way(
    request_: BenchRequest, settings: Settings
) -> None:
    comparisons = _comparisons(request_, settings, 4.02)
    assert {comparison.verdict for comparison in comparisons} <= {
        Verdict.SLOWER,
        Verdict.INCONCLUSIVE,
    }


def test_a_gain_for_who_comes_second_decides_nothing(
    request_: BenchRequest, settings: Settings
) -> None:
    comparisons = _comparisons(request_, settings, 4.0, replace(NOISE, order=0.03))
    assert [comparison.verdict for comparison in comparisons] == [Verdict.INCONCLUSIVE] * 20


def test_an_open_verdict_is_measured_on_and_a_settled_one_is_not(
    request_: BenchRequest, settings: Settings
) -> None:
    quiet = Noise(white=0.002)
    settled = _comparisons(request_, settings, 5.0, quiet)
    border = _comparisons(request_, settings, 4.012, quiet)
    assert {comparison.pairs for comparison in settled} == {100}
    assert max(comparison.pairs for comparison in border) == 1600
