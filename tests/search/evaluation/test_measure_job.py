"""What the search keeps of a benchmark; the stage itself is replaced by its results."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kopt.config.callbacks import ignore
from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.kernels.bench_result import BaselinePath, BenchResult, PlainCopy
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckLevel
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Provenance, Status, Verdict
from kopt.search.evaluation import measure_job as module
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.evaluation.measure_job import CheckedCase, JobTiming
from kopt.search.records.evaluation import BELOW_COPY, COPY, EvaluationJob
from kopt.search.storage.artifacts import open_artifacts
from kopt.tools.bench.request import BenchRequest
from kopt.tools.check.request import CheckRequest
from support.bench_results import bench_result, check, comparison, failed_bench, latency
from support.named_gpu import NamedGpu

KERNEL = "silu_and_mul_b8xh14336"
SOURCE = """/* kopt: 1
family: other
where: B <= 128
launch:
  - {kernel: k, grid: B, block: 128, args: [input, out, B, H]}
*/
"""
Measure = Callable[..., JobTiming]


@pytest.fixture
def asked() -> list[BenchRequest]:
    """Return what the stage is asked, in order."""
    return []


@pytest.fixture
def measure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: list[BenchRequest]) -> Measure:
    """Return a function that measures one candidate whose benchmarks give `result`."""

    def call(
        result: Callable[[BenchRequest], BenchResult] | BenchResult,
        level: CheckLevel = "quick",
        baseline: str | None = None,
    ) -> JobTiming:
        def stand_in(request: BenchRequest, *_: object) -> BenchResult:
            asked.append(request)
            return result if isinstance(result, BenchResult) else result(request)

        monkeypatch.setattr(module, "bench_candidate", stand_in)
        problem, workload = find_kernel(KERNEL, None)
        request = CheckRequest(Case(problem, workload, Candidate(SOURCE, "k.cu"), {}), level)
        fields: dict[str, Any] = {
            "id": "run-1/0/quick",
            "kernel": KERNEL,
            "source": SOURCE,
            "source_name": "k.cu",
            "tune": {},
            "level": level,
            "arch": "sm_90a",
            "baseline": baseline,
        }
        job = EvaluationJob(**fields)
        gpu = NamedGpu()
        site = EvaluationSite(gpu, gpu, Settings(tmp_path), open_artifacts(tmp_path), say=print)
        return module.measure_job(job, CheckedCase(request, check()), site)

    return call


def test_a_step_keeps_time_speedup_and_interval_as_measured(measure: Measure) -> None:
    found = measure(bench_result())
    values = {value.metric: value for value in found.values}
    assert {value.provenance for value in found.values} == {Provenance.MEASURED}
    assert values["latency"].value == 2.39
    assert (values["speedup_low"].value, values["speedup_high"].value) == (1.205, 1.221)
    assert (values["speedup"].value, values["speedup"].unit) == (
        1.213,
        "flashinfer_cute (PDL on)",
    )
    assert found.summary == ("b8xh14336: 1.213x flashinfer_cute (PDL on) (1.205 to 1.221), faster")


def test_a_step_keeps_the_time_of_a_plain_copy_beside_its_own(
    measure: Measure, asked: list[BenchRequest]
) -> None:
    found = measure(bench_result(plain_copy=_copy(2.0)))
    values = {value.metric: value for value in found.values}
    assert asked[0].copies
    assert (values[COPY].value, values[COPY].unit) == (2.0, "us")
    assert BELOW_COPY not in values
    assert "plain copy" not in found.summary


def test_a_time_clearly_below_the_copy_counts_and_is_told(measure: Measure) -> None:
    found = measure(bench_result(plain_copy=_copy(2.39 / 0.8)))
    values = {value.metric: value for value in found.values}
    assert found.status is Status.PASSED
    assert values[BELOW_COPY].value == pytest.approx(0.8)
    assert values["speedup"].value == 1.213
    assert "it takes 0.80 of the time of a plain copy of as many bytes" in found.summary


def _copy(us: float) -> PlainCopy:
    return PlainCopy(
        read_bytes=458752,
        written_bytes=229376,
        latency=latency(us),
        block=256,
        vectors=1,
        pdl=True,
    )


def test_a_step_has_a_fixed_number_of_pairs_and_a_winner_as_many_as_it_needs(
    measure: Measure, asked: list[BenchRequest]
) -> None:
    measure(bench_result())
    measure(bench_result(), level="full")
    assert (asked[0].min_pairs, asked[0].max_pairs) == (100, 100)
    assert asked[1].max_pairs == 1600


def test_only_the_first_timing_of_a_run_tells_its_steps(
    measure: Measure, asked: list[BenchRequest]
) -> None:
    measure(bench_result())
    measure(bench_result(), baseline="flashinfer_cute (PDL on)")
    assert [request.progress for request in asked] == [print, ignore]


def test_timing_of_a_winner_tells_at_which_workload_of_how_many_it_is(
    measure: Measure, asked: list[BenchRequest], capsys: pytest.CaptureFixture[str]
) -> None:
    measure(bench_result(), level="full", baseline="flashinfer_cute (PDL on)")
    for request in asked:
        request.progress("checking the baselines")
    assert capsys.readouterr().out.splitlines() == [
        "1 of 2: checking the baselines",
        "2 of 2: checking the baselines",
    ]


def test_a_winner_is_timed_at_every_workload_that_it_claims_the_named_one_first(
    measure: Measure, asked: list[BenchRequest]
) -> None:
    found = measure(bench_result(), level="full")
    names = [request.case.workload.name for request in asked]
    assert names == ["b8xh14336", "b128xh14336"]
    assert [request.checked.kernel for request in asked if request.checked] == [
        f"silu_and_mul_{name}" for name in names
    ]
    assert set(found.documents) == {"bench", "bench/b128xh14336"}
    assert {value.workload for value in found.values} == set(names)


def test_an_impossible_time_gives_no_value_at_all(measure: Measure) -> None:
    impossible = comparison(Verdict.IMPOSSIBLE, speedup=None, interval=None)
    found = measure(bench_result(Verdict.IMPOSSIBLE, comparisons=(impossible,)))
    assert (found.status, found.values) == (Status.PASSED, ())
    assert "impossible" in found.summary


@pytest.mark.parametrize("fine", ["b8xh14336", "b128xh14336"])
def test_a_winner_impossible_at_one_workload_has_no_value_at_any(
    measure: Measure, fine: str
) -> None:
    def result(request: BenchRequest) -> BenchResult:
        if request.case.workload.name == fine:
            return bench_result()
        return bench_result(Verdict.IMPOSSIBLE, comparisons=(comparison(Verdict.IMPOSSIBLE),))

    assert measure(result, level="full").values == ()


def test_what_the_timing_finds_wrong_is_the_status(measure: Measure) -> None:
    found = Diagnostic(message="results of timed calls differ from the checked ones")
    failed = measure(failed_bench(Status.REWARD_HACK, diagnostics=(found,)))
    assert (failed.status, failed.values) == (Status.REWARD_HACK, ())
    assert failed.summary == "results of timed calls differ from the checked ones"
    assert set(failed.documents) == {"bench"}


def test_no_library_is_asked_again_in_a_run_where_none_works_but_by_the_winner(
    measure: Measure, asked: list[BenchRequest]
) -> None:
    alone = bench_result(comparisons=(comparison(baseline=BaselinePath(name="reference")),))
    measure(alone)
    measure(alone, baseline="reference")
    measure(alone, baseline="reference", level="full")
    assert [request.baselines for request in asked[:3]] == ["auto", "reference", "auto"]


def test_another_baseline_than_the_run_s_is_refused(measure: Measure) -> None:
    measure(bench_result(), baseline="flashinfer_cute (PDL on)")
    with pytest.raises(SetupError, match="begin a new run"):
        measure(bench_result(), baseline="flashinfer (PDL off)")
