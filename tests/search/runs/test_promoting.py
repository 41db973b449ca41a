"""The promotion of a run's candidate: what is handed to the rule of the benchmark."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.kernels.promotion_result import PromotionResult
from kopt.kernels.status import Status
from kopt.search.runs import promoting
from kopt.search.runs.promoting import fresh_timer, promote_member
from kopt.tools.bench.promotion import PromotionRequest
from support.bench_results import H100, check
from support.populations import SOURCE, member, timed
from support.scripted_runs import settings as run_settings

KERNEL = "silu_and_mul_b8xh14336"


def test_candidate_is_promoted_with_its_tune_values_as_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[PromotionRequest] = []

    def promote(request: PromotionRequest, opens: Callable[[], object], _: Settings) -> object:
        asked.append(request)
        return PromotionResult(
            status=Status.PASSED,
            outcome="promoted",
            kernel=KERNEL,
            domain=("b8xh14336",),
            candidate=request.case.candidate.id,
            device="cuda:0",
            gpu=H100,
            check=check(),
            elapsed_s=1.0,
        )

    monkeypatch.setattr(promoting, "promote_candidate", promote)
    best = member(3, timed(1.0, 1.5), tune={"BLOCK": 256, "ROWS": 2})
    run = run_settings(kernel=KERNEL, device="cuda:0", gpu=H100)
    assert promote_member(best, run, Settings(tmp_path), print).outcome == "promoted"
    (request,) = asked
    assert request.case.problem.name == "silu_and_mul"
    assert "BLOCK: [256, 128, 64], ROWS: [2, 1, 4]" in request.case.candidate.source
    assert request.case.candidate.source != SOURCE
    assert request.on_existing == "keep_better"


def test_simulator_promotes_nobody(tmp_path: Path) -> None:
    asked = fresh_timer("sim", Settings(tmp_path))
    with pytest.raises(SetupError, match="sim measures no time"), asked:
        pass
