"""A promotion that some workloads stop says which held and what claims them alone."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.promotion_result import PromotionResult
from kopt.tools.bench import promotion, reference_side
from kopt.tools.bench.promotion import PromotionRequest, promote_candidate
from kopt.tools.check import stage as check_stage
from support.bench_cases import CANDIDATE, bench_problem
from support.promotion_cases import FileCompiler, Opener, ScriptedSanitizer, promotion_of
from support.scripted_timer import Script

pytestmark = pytest.mark.slow  # whole promotions
Times = Callable[[int, str], float]


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PromotionRequest:
    """A candidate whose domain has three workloads; a baseline takes 5 us."""
    fake = FileCompiler()
    monkeypatch.setattr(check_stage, "compile_candidate", fake)
    monkeypatch.setattr(reference_side, "compile_candidate", fake)
    monkeypatch.setattr(promotion, "sanitize", ScriptedSanitizer())
    shapes = ((8, 64), (16, 64), (32, 64))
    problem = bench_problem(tmp_path / "p", shapes=shapes)
    return promotion_of(problem, CANDIDATE)


def test_refused_domain_names_what_held_and_the_line_that_claims_it(
    request_: PromotionRequest, settings: Settings
) -> None:
    result = _promoted(
        request_, settings, lambda process, workload: 5.5 if workload == "b32xh64" else 4.0
    )
    assert [reason.split(":")[0] for reason in result.reasons] == ["b32xh64"]
    assert result.narrower is not None
    assert result.narrower.where == "B <= 16"
    held = result.narrower.workloads
    assert [(one.workload, one.measurements) for one in held] == [("b8xh64", 1), ("b16xh64", 1)]
    assert [one.speedup for one in held] == pytest.approx([1.25, 1.25], rel=0.01)
    assert "write `where: B <= 16` in the header" in result.why
    assert not settings.winners.exists()


def test_that_line_is_promoted_by_measurements_of_its_own(
    request_: PromotionRequest, settings: Settings
) -> None:
    def times(process: int, workload: str) -> float:
        return 5.5 if workload == "b32xh64" else 4.0

    narrower = _promoted(request_, settings, times).narrower
    assert narrower is not None
    source = CANDIDATE.source.replace("launch:", f"where: {narrower.where}\nlaunch:", 1)
    again = _promoted(
        replace(request_, case=replace(request_.case, candidate=Candidate(source))), settings, times
    )
    assert (again.outcome, again.narrower) == ("promoted", None)
    assert {one.workload: len(one.measurements) for one in again.workloads} == {
        "b8xh64": 6,
        "b16xh64": 6,
    }


def test_workloads_that_agree_hold_where_another_does_not(
    request_: PromotionRequest, settings: Settings
) -> None:
    def times(process: int, workload: str) -> float:
        return 4.3 if (process, workload) == (2, "b8xh64") else 4.0

    narrower = _promoted(request_, settings, times).narrower
    assert narrower is not None
    assert narrower.where == "B >= 16"
    assert [one.measurements for one in narrower.workloads] == [6, 6]


@pytest.mark.parametrize(
    "opener",
    [
        Opener(candidate_us=lambda process, workload: 5.5),
        Opener(Script(candidate_fails_at=90)),
        Opener(candidate_us=lambda process, workload: 0.001 if workload == "b32xh64" else 4.0),
    ],
    ids=["nothing held", "it faulted", "impossible"],
)
def test_candidate_without_a_sound_part_is_offered_none(
    request_: PromotionRequest, settings: Settings, opener: Opener
) -> None:
    result = promote_candidate(request_, opener, settings)
    assert result.reasons
    assert result.narrower is None


def _promoted(request: PromotionRequest, settings: Settings, times: Times) -> PromotionResult:
    return promote_candidate(request, Opener(candidate_us=times), settings)
