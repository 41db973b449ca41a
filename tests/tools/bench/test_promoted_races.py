"""What the simulator says beside the check of a promotion: in its receipt, or what stops it."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.status import Status
from kopt.tools.bench import promotion, reference_side
from kopt.tools.bench.promotion import PromotionRequest, promote_candidate
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.check import stage as check_stage
from support.bench_cases import CANDIDATE, bench_problem
from support.promotion_cases import FileCompiler, Opener, ScriptedSanitizer, promotion_of
from support.synthetic_check import NumpyDevice


@pytest.fixture
def request_(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PromotionRequest:
    """A candidate that would be promoted."""
    compiler = FileCompiler()
    monkeypatch.setattr(check_stage, "compile_candidate", compiler)
    monkeypatch.setattr(reference_side, "compile_candidate", compiler)
    monkeypatch.setattr(promotion, "sanitize", ScriptedSanitizer())
    return promotion_of(bench_problem(tmp_path / "problem"), CANDIDATE)


def test_a_receipt_says_what_the_simulator_saw(
    request_: PromotionRequest, settings: Settings, simulator: NumpyDevice
) -> None:
    simulator.status = Status.UNSUPPORTED_ON_SIM
    assert promote_candidate(request_, Opener(), settings).outcome == "promoted"
    receipt = read_receipt(settings.winners / "synthetic" / "b8xh64.sm_90a.receipt.json")
    said = receipt.check.race_check
    assert said is not None and said.outcome == "unavailable"
    assert (said.reason or "").startswith("unsupported_on_sim")


def test_a_race_that_only_the_simulator_sees_stops_a_promotion(
    request_: PromotionRequest, settings: Settings, simulator: NumpyDevice
) -> None:
    simulator.status = Status.DATA_RACE
    result = promote_candidate(request_, Opener(), settings)
    assert (result.outcome, result.status) == ("not_promoted", Status.DATA_RACE)
    assert result.reasons[0].startswith("the full check ended with data_race")
    assert not settings.winners.exists()
