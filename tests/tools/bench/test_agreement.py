"""How far repeated measurements of a promotion may lie apart, and what a receipt says of it."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.tools.bench import promotion, reference_side
from kopt.tools.bench.promotion import PromotionRequest, promote_candidate
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.check import stage as check_stage
from support.bench_cases import CANDIDATE, bench_problem
from support.promotion_cases import FileCompiler, Opener, ScriptedSanitizer, promotion_of

pytestmark = pytest.mark.slow  # whole promotions


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PromotionRequest:
    """A candidate whose domain has two workloads; it takes 4 us, the baseline 5."""
    fake = FileCompiler()
    monkeypatch.setattr(check_stage, "compile_candidate", fake)
    monkeypatch.setattr(reference_side, "compile_candidate", fake)
    monkeypatch.setattr(promotion, "sanitize", ScriptedSanitizer())
    problem = bench_problem(tmp_path / "p", shapes=((8, 64), (16, 64)))
    return promotion_of(problem, CANDIDATE)


def test_processes_that_do_not_agree_stop_the_promotion(
    request_: PromotionRequest, settings: Settings
) -> None:
    opener = Opener(candidate_us=lambda process, workload: 4.0 if process == 1 else 4.2)
    result = promote_candidate(request_, opener, settings)
    assert (result.outcome, len(result.attempts)) == ("not_promoted", 12)
    assert [reason.split(":")[0] for reason in result.reasons] == ["b8xh64", "b16xh64"]
    assert "do not agree" in result.reasons[0]
    assert not settings.winners.exists()


@pytest.mark.parametrize(
    ("one_us", "other_us", "outcome"),
    [
        (4.0, 4.04, "promoted"),  # 1 % apart beside a gain of 25 %
        (4.0, 4.13, "not_promoted"),  # 3 %: more than is ever allowed
        (4.85, 4.9, "not_promoted"),  # 1 % beside a gain of 3 %: a third of it
    ],
)
def test_measurements_may_differ_by_what_is_little_beside_the_gain(
    request_: PromotionRequest, settings: Settings, one_us: float, other_us: float, outcome: str
) -> None:
    opener = Opener(candidate_us=lambda process, workload: one_us if process == 1 else other_us)
    result = promote_candidate(request_, opener, settings)
    assert result.outcome == outcome
    assert outcome == "promoted" or "allowed beside such a gain" in result.reasons[0]


def test_a_receipt_states_the_range_of_measurements_that_differ(
    request_: PromotionRequest, settings: Settings
) -> None:
    opener = Opener(
        candidate_us=lambda process, workload: 4.0 if process == 1 else 4.04,
    )
    promote_candidate(request_, opener, settings)
    receipt = read_receipt(settings.winners / "synthetic" / "b8xh64.sm_90a.receipt.json")
    low, high = receipt.workloads[0].range
    assert high / low == pytest.approx(1.01, abs=0.005)
