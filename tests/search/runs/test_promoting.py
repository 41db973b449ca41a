"""The promotion of a run's candidate: what is handed to the rule of the benchmark."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.kernels.promotion_result import HeldWorkload, NarrowerDomain, PromotionResult
from kopt.kernels.status import Status
from kopt.search.runs import promoting
from kopt.search.runs.promoting import fresh_timer, promote_member
from kopt.tools.bench.promotion import PromotionRequest
from support.bench_results import H100, check
from support.populations import SOURCE, member, timed
from support.scripted_runs import settings as run_settings

KERNEL = "silu_and_mul_b8xh14336"


class Promotions:
    """Promotes what claims no more than `held`, and says of the rest what did hold."""

    def __init__(self, *held: str, where: str = "B <= 128") -> None:
        self.asked: list[PromotionRequest] = []
        self._held, self._where = held, where

    def __call__(
        self, request: PromotionRequest, opens: Callable[[], object], _: Settings
    ) -> PromotionResult:
        self.asked.append(request)
        names = tuple(workload.name for workload in request.case.timed_domain or ())
        holds = set(names) <= set(self._held)
        one = HeldWorkload(workload="", baseline="flashinfer", speedup=1.5, measurements=1)
        held = tuple(one.model_copy(update={"workload": name}) for name in self._held)
        return PromotionResult(
            status=Status.PASSED,
            outcome="promoted" if holds else "not_promoted",
            reasons=() if holds else ("b1024xh14336: slower",),
            narrower=None if holds else NarrowerDomain(workloads=held, where=self._where),
            kernel=KERNEL,
            domain=names,
            candidate=request.case.candidate.id,
            device="cuda:0",
            gpu=H100,
            check=check(),
            elapsed_s=1.0,
        )


EVERY = ("b8xh14336", "b128xh14336", "b1024xh14336")


def _promoted(
    promotions: Promotions, home: Path, monkeypatch: pytest.MonkeyPatch
) -> PromotionResult:
    monkeypatch.setattr(promoting, "promote_candidate", promotions)
    source = SOURCE.replace("args: [x]", "args: [input, out]")
    best = member(3, timed(1.0, 1.5), source=source, tune={"BLOCK": 256, "ROWS": 2})
    run = run_settings(kernel=KERNEL, device="cuda:0", gpu=H100)
    return promote_member(best, run, Settings(home), print)


def test_candidate_is_promoted_with_its_tune_values_as_defaults(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    promotions = Promotions(*EVERY)
    result = _promoted(promotions, tmp_path, monkeypatch)
    assert (result.outcome, result.claimed) == ("promoted", None)
    (request,) = promotions.asked
    assert request.case.problem.name == "silu_and_mul"
    assert "BLOCK: [256, 128, 64], ROWS: [2, 1, 4]" in request.case.candidate.source
    assert request.case.candidate.source != SOURCE
    assert request.on_existing == "keep_better"


def test_candidate_is_promoted_for_the_workloads_that_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    promotions = Promotions(*EVERY[:2])
    result = _promoted(promotions, tmp_path, monkeypatch)
    assert (result.outcome, result.claimed, result.domain) == ("promoted", "B <= 128", EVERY[:2])
    assert result.why == "with `where: B <= 128`, since other workloads fell short"
    assert [one.case.header and one.case.header.where for one in promotions.asked][1] == "B <= 128"


def test_candidate_that_does_not_hold_at_the_run_s_workload_is_not_promoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    promotions = Promotions(EVERY[1])
    assert _promoted(promotions, tmp_path, monkeypatch).outcome == "not_promoted"
    assert len(promotions.asked) == 1


def test_simulator_promotes_nobody(tmp_path: Path) -> None:
    asked = fresh_timer("sim", Settings(tmp_path))
    with pytest.raises(SetupError, match="sim measures no time"), asked:
        pass
