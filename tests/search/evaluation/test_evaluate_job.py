"""What the search keeps of the stages' results; the check itself is replaced by its result."""

from pathlib import Path
from typing import Any

import pytest

from kopt.config.settings import Settings
from kopt.kernels.check_result import CheckLevel, CheckResult, Mismatch
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Provenance, Status
from kopt.kernels.time_estimate import TimeEstimate
from kopt.search.evaluation import evaluate_job as module
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.records.evaluation import Evaluation
from kopt.search.storage.artifacts import open_artifacts
from kopt.tools.check.request import CheckRequest
from kopt.tools.sim.device import SimDevice
from support.checked_jobs import checked, job
from support.estimate_cases import EstimateCase


def estimated(_: object, plan: LaunchPlan, *__: object) -> TimeEstimate:
    """Return an estimate of machine code that is made up."""
    return EstimateCase().estimate().model_copy(update={"workload": plan.workload})


@pytest.fixture
def evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that evaluates a tune choice whose check has the given fields."""
    (tmp_path / "cubin").write_bytes(b"cubin")

    requests: list[CheckRequest] = []
    said: list[str] = []

    def call(tune: dict[str, int], level: CheckLevel = "quick", **fields: Any) -> Evaluation:
        def stand_in(request: CheckRequest, *_: object) -> CheckResult:
            requests.append(request)
            request.progress("3 of 16: seed 1, about 4 s left")
            return checked(request, tmp_path / "cubin", **fields)

        monkeypatch.setattr(module, "check_candidate", stand_in)
        monkeypatch.setattr(module, "estimate_build", estimated)
        settings = Settings(tmp_path)
        place = EvaluationSite(
            SimDevice(settings), None, settings, open_artifacts(tmp_path), say=said.append
        )
        return module.evaluate_job(job(tune=tune, level=level), place)

    call.requests = requests  # type: ignore[attr-defined]  # what the stage was asked
    call.said = said  # type: ignore[attr-defined]  # what the run was told besides its events
    return call


def test_passed_candidate_gets_an_estimated_latency_and_computed_facts(evaluate: Any) -> None:
    evaluation = evaluate({"BLOCK": 128, "UNROLL": 1})
    values = {value.metric: value for value in evaluation.values}
    assert evaluation.latency.provenance is Provenance.ESTIMATED and evaluation.latency.value > 0
    assert values["spills"].value == 12.0 and values["spills"].provenance is Provenance.COMPUTED
    assert evaluation.registers == 40.0


def test_full_check_tells_the_run_how_far_it_is_and_quick_ones_do_not(evaluate: Any) -> None:
    evaluate({"BLOCK": 256, "UNROLL": 1})
    assert evaluate.said == []
    evaluate({"BLOCK": 256, "UNROLL": 1}, level="full")
    assert evaluate.said == ["3 of 16: seed 1, about 4 s left"]


def test_endless_error_is_summed_up(evaluate: Any) -> None:
    error = Diagnostic(severity="error", message="no such type \n" * 1_000_000, line=7)
    found = evaluate({"BLOCK": 128, "UNROLL": 1}, status=Status.COMPILE_ERROR, diagnostics=(error,))
    assert found.summary.startswith("line 7: no such type") and len(found.summary) < 700


def test_artifacts_are_stored_before_they_are_named(evaluate: Any, tmp_path: Path) -> None:
    evaluation = evaluate({"BLOCK": 128, "UNROLL": 1})
    assert set(evaluation.artifacts) == {"check", "estimate", "cubin", "family"}
    assert open_artifacts(tmp_path).get(evaluation.artifacts["cubin"]) == b"cubin"


def test_same_cubin_with_the_same_launches_is_the_same_program(evaluate: Any) -> None:
    one, two = (evaluate({"BLOCK": 128, "UNROLL": unroll}) for unroll in (1, 2))
    assert one.equivalence == two.equivalence is not None


def test_same_cubin_with_another_block_size_is_another_program(evaluate: Any) -> None:
    one, two = (evaluate({"BLOCK": block, "UNROLL": 1}) for block in (128, 256))
    assert one.equivalence != two.equivalence


@pytest.mark.parametrize(("level", "compiler"), [("quick", "nvrtc"), ("full", "nvcc")])
def test_sweeps_take_the_fast_compiler_and_winners_the_one_that_ships(
    evaluate: Any, level: CheckLevel, compiler: str
) -> None:
    evaluate({"BLOCK": 128, "UNROLL": 1}, level=level)
    assert evaluate.requests[-1].compiler == compiler


def test_candidate_that_fell_short_carries_no_speed_and_says_what_was_wrong(evaluate: Any) -> None:
    mismatch = Mismatch(
        workload="b8xh14336",
        tensor="out",
        gate="ulp",
        index=(3, 17),
        row=3,
        column=17,
        expected="1.5",
        got="0.0",
        wrong_elements=1,
        total_elements=8,
        pattern="a single element",
        seed=1,
        regime="normal",
    )
    evaluation = evaluate({"BLOCK": 128}, status=Status.INCORRECT, mismatch=mismatch)
    assert evaluation.values == () and evaluation.equivalence is None
    assert evaluation.summary == "b8xh14336: out[3, 17] is 0.0, expected 1.5 (a single element)"


def test_first_error_is_the_summary_where_nothing_was_computed(evaluate: Any) -> None:
    diagnostics = (
        Diagnostic(severity="warning", message="unused variable", line=1),
        Diagnostic(message="expected ;", line=9),
    )
    failed = evaluate({"BLOCK": 128}, status=Status.COMPILE_ERROR, diagnostics=diagnostics)
    assert failed.summary == "line 9: expected ;"


def test_failure_without_words_is_named_by_its_status(evaluate: Any) -> None:
    assert evaluate({"BLOCK": 128}, status=Status.TIMEOUT).summary == "timeout"
