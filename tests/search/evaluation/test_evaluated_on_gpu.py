"""What the search keeps of a candidate that is timed: the check and the timing are replaced."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kopt.config.settings import Settings
from kopt.kernels.check_result import CheckResult
from kopt.kernels.status import Provenance, Status
from kopt.search.evaluation import evaluate_job as module
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.evaluation.measure_job import JobTiming
from kopt.search.records.evaluation import (
    FAMILY_CONTRADICTED,
    FLOOR,
    SPEEDUP,
    Evaluation,
    EvaluationJob,
    KnownMeasurement,
    MetricValue,
)
from kopt.search.selection.family_evidence import FamilyEvidence
from kopt.search.storage.artifacts import open_artifacts
from kopt.tools.check.request import CheckRequest
from kopt.tools.devices.gpu_time import count_gpu_time
from support.checked_jobs import checked, job
from support.named_gpu import NamedGpu

Evaluate = Callable[..., Evaluation]


def _value(speedup: float) -> MetricValue:
    return MetricValue(
        workload="b8xh14336",
        metric=SPEEDUP,
        unit="reference",
        provenance=Provenance.MEASURED,
        value=speedup,
    )


@pytest.fixture
def measured() -> list[int]:
    """Return the candidates that were measured, in order."""
    return []


@pytest.fixture
def evaluate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, measured: list[int]) -> Evaluate:
    """Return a function that evaluates a candidate; the n-th measurement gives n times."""
    (tmp_path / "cubin").write_bytes(b"cubin")
    settings = Settings(tmp_path)
    gpu = NamedGpu()
    site = EvaluationSite(gpu, gpu, settings, open_artifacts(tmp_path))
    timing_status = [Status.PASSED]

    def check(request: CheckRequest, *_: object) -> CheckResult:
        count_gpu_time(0.5)
        return checked(request, tmp_path / "cubin")

    def measure(one: EvaluationJob, *_: object) -> JobTiming:
        count_gpu_time(1.5)
        measured.append(one.candidate)
        status = timing_status.pop() if len(timing_status) > 1 else timing_status[0]
        values = (_value(float(len(measured))),) if status is Status.PASSED else ()
        return JobTiming(status, "timed", values, {"bench": b"%d" % len(measured)})

    monkeypatch.setattr(module, "check_candidate", check)
    monkeypatch.setattr(module, "measure_job", measure)

    def call(candidate: int, fails: bool = False, **fields: Any) -> Evaluation:
        if fails:
            timing_status.append(Status.INCORRECT)
        return module.evaluate_job(job(candidate, **({"arch": "sm_90a"} | fields)), site)

    return call


def test_same_program_is_measured_once_and_the_second_says_whose_times_it_has(
    evaluate: Evaluate, measured: list[int]
) -> None:
    first, second = evaluate(0), evaluate(7, tune={"BLOCK": 128, "UNROLL": 2})
    assert measured == [0]
    assert (first.measured_as, second.measured_as) == (None, 0)
    assert second.speedup == first.speedup
    assert second.artifacts["bench"] == first.artifacts["bench"]
    assert second.summary.endswith("the same cubins and launches as #0, whose times these are")


def test_what_the_run_measured_before_this_process_is_not_measured_again(
    evaluate: Evaluate, measured: list[int]
) -> None:
    equivalence = evaluate(0).equivalence
    assert equivalence is not None
    known = KnownMeasurement(equivalence=equivalence, candidate=3, values=(_value(2.5),))
    again = evaluate(4, id="run-2/4/quick", measured=(known,))
    assert measured == [0]
    assert (again.measured_as, again.speedup) == (3, _value(2.5))


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"tune": {"BLOCK": 256, "UNROLL": 1}}, "another block size is another program"),
        ({"id": "run-2/7/quick"}, "numbers of another run are not this run's"),
        ({"level": "tie"}, "a tie is to be measured again"),
        ({"level": "full"}, "a winner is measured as what it is"),
    ],
)
def test_everything_else_is_measured(
    evaluate: Evaluate, measured: list[int], fields: dict[str, Any], why: str
) -> None:
    evaluate(0)
    assert evaluate(7, **fields).measured_as is None, why
    assert measured == [0, 7]


def test_failed_timing_is_nobody_else_s(evaluate: Evaluate, measured: list[int]) -> None:
    assert evaluate(0, fails=True).status is Status.INCORRECT
    assert evaluate(1).status is Status.PASSED
    assert measured == [0, 1]


def test_gpu_time_is_that_of_check_and_timing(evaluate: Evaluate) -> None:
    assert evaluate(0).gpu_seconds == 2.0
    assert evaluate(1).gpu_seconds == 0.5


def test_floor_is_computed_for_the_gpu_at_hand(evaluate: Evaluate) -> None:
    floor = evaluate(0).metric(FLOOR)
    assert floor is not None and floor.provenance is Provenance.COMPUTED
    assert floor.value == pytest.approx(NamedGpu().gpu.null_kernel_us)  # of 8 rows, next to nothing


def test_claim_that_the_machine_code_contradicts_is_recorded_with_its_reason(
    evaluate: Evaluate, tmp_path: Path
) -> None:
    honest, lying = evaluate(0), evaluate(1, family="clusters")
    assert honest.metric(FAMILY_CONTRADICTED) is None
    assert lying.metric(FAMILY_CONTRADICTED) is not None
    kept = open_artifacts(tmp_path).get(lying.artifacts["family"])
    evidence = FamilyEvidence.model_validate_json(kept)
    assert (evidence.verdict, evidence.why) == ("contradicted", "the largest cluster has 1 block")
