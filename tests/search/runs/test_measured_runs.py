"""Runs on a GPU over scripted measurements: order, comparability, resuming, what is reported."""

from pathlib import Path

import pytest

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.status import Provenance, Status
from kopt.search.records.evaluation import Evaluation, EvaluationJob, MetricValue
from kopt.search.records.run_state import RunState
from kopt.search.reports.contents import read_contents
from kopt.search.reports.page import render_page
from kopt.search.reports.run_report import report_run
from kopt.search.rounds.advance import run_search
from kopt.search.runs.run import RunRequest, begin_run, refuse_another_device, reopen_run
from kopt.search.storage.artifacts import open_artifacts
from kopt.search.store.store import RunStore
from support.bench_results import H100
from support.populations import timed
from support.scripted_runs import new_store, search

KERNEL = "silu_and_mul_b8xh14336"
BASELINE = "flashinfer (PDL on)"


def _answer(job: EvaluationJob) -> Evaluation:
    """Measure ever longer times, as on a device that heats up; BLOCK 256 is best by speedup."""
    speedup = job.tune["BLOCK"] / 256 + 0.1 / job.tune["ROWS"]
    quick = timed(latency_us=1.0 + speedup, speedup=speedup)
    if job.level == "quick":
        return quick
    other = timed(latency_us=7.0, speedup=0.9, workload="a1").values
    return quick.model_copy(update={"values": (*quick.values, *other)})


def test_the_winner_is_the_one_with_the_best_speedup_not_the_shortest_time(tmp_path: Path) -> None:
    with new_store(tmp_path, device="cuda:0", gpu=H100) as store:
        state = run_search(search(store, _answer))
        assert state.winner is not None
        assert store.reader.members()[state.winner].tune == {"BLOCK": 256, "ROWS": 1}


def test_every_job_after_the_first_round_names_the_run_s_baseline(tmp_path: Path) -> None:
    jobs: list[EvaluationJob] = []

    def answer(job: EvaluationJob) -> Evaluation:
        jobs.append(job)
        return _answer(job)

    with new_store(tmp_path, device="cuda:0", gpu=H100) as store:
        run_search(search(store, answer))
    assert jobs[0].baseline is None
    assert {job.baseline for job in jobs[1:]} == {BASELINE}


def test_the_report_has_the_final_times_of_every_workload_the_named_one_first(
    tmp_path: Path,
) -> None:
    with new_store(tmp_path, device="cuda:0", gpu=H100) as store:
        run_search(search(store, _answer))
        report = report_run(store.reader, store.folder)
    assert report.gpu == H100
    assert [time.workload for time in report.winner_times] == ["b8", "a1"]
    assert report.winner_times[1].speedup == 0.9
    assert report.best_speedup == pytest.approx(1.1)
    assert report.best_speedup_interval == pytest.approx((1.095, 1.105))
    assert (report.baseline, report.provenance) == (BASELINE, Provenance.MEASURED)
    assert report.ratio == pytest.approx(1.1 / (64 / 256 + 0.1))


def test_the_page_shows_speedup_interval_baseline_and_device(tmp_path: Path) -> None:
    with new_store(tmp_path, device="cuda:0", gpu=H100) as store:
        run_search(search(store, _answer))
        page = render_page(read_contents(store.reader, store.folder, Settings(tmp_path)))
    assert "1.100 times the speed of flashinfer (PDL on) (1.095 to 1.105)" in page
    assert "3.14 times by measured speed." in page
    assert "NVIDIA H100 80GB HBM3, GPU-1, driver 580.159.04" in page
    assert "Winner at a1" in page
    assert "estimated" not in page


def test_an_impossible_time_makes_no_winner(tmp_path: Path) -> None:
    def answer(job: EvaluationJob) -> Evaluation:
        evaluation = _answer(job)
        if job.level == "full" and job.tune == {"BLOCK": 256, "ROWS": 1}:
            return Evaluation(status=Status.PASSED, summary="impossible", device="cuda:0")
        return evaluation

    with new_store(tmp_path, device="cuda:0", gpu=H100) as store:
        state = run_search(search(store, answer))
        assert state.winner is not None
        assert store.reader.members()[state.winner].tune == {"BLOCK": 256, "ROWS": 2}


def test_a_failed_evaluation_carries_no_speedup() -> None:
    speedup = MetricValue(
        workload="b8", metric="speedup", unit=BASELINE, provenance=Provenance.MEASURED, value=2.0
    )
    with pytest.raises(ValueError, match="cannot carry"):
        Evaluation(status=Status.REWARD_HACK, summary="", device="cuda:0", values=(speedup,))


def test_a_run_goes_on_with_its_own_gpu_only(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    begin_run(RunRequest(kernel=KERNEL, device="cuda:0", gpu=H100), settings).close()
    other = H100.model_copy(update={"uuid": "GPU-2", "name": "NVIDIA H200", "index": 1})
    with pytest.raises(ToolError, match=r"measured on NVIDIA H100 .*cuda:1 is NVIDIA H200"):
        reopen_run("run-", settings, None, other)
    with pytest.raises(ToolError, match="sim measures no time"):
        reopen_run("run-", settings)
    # Elsewhere in CUDA_VISIBLE_DEVICES it is the same GPU.
    moved = H100.model_copy(update={"index": 3})
    reopen_run("run-", settings, None, moved).close()


def test_a_run_on_a_pool_goes_on_with_any_gpu_of_its_model(tmp_path: Path) -> None:
    new_store(tmp_path, device="ray", gpu=H100).close()
    state = _state(tmp_path)
    refuse_another_device(state, H100.model_copy(update={"uuid": "GPU-2", "index": 1}))
    with pytest.raises(ToolError, match="name the first"):
        refuse_another_device(state, H100.model_copy(update={"uuid": "GPU-2", "name": "H200"}))
    with pytest.raises(ToolError, match="sim measures no time"):
        refuse_another_device(state, None)


def _state(home: Path) -> RunState:
    with RunStore(home / "runs" / "run-1", open_artifacts(home)) as store:
        return store.reader.state()


def test_estimates_are_not_continued_by_measurements(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    begin_run(RunRequest(kernel=KERNEL), settings).close()
    with pytest.raises(ToolError, match="go on with --device sim"):
        reopen_run("run-", settings, None, H100)


def test_a_refused_resumption_leaves_the_run_as_it_was(tmp_path: Path) -> None:
    settings = Settings(tmp_path)
    with begin_run(RunRequest(kernel=KERNEL), settings) as store:
        store.pause("for now", 1.0)
        events = store.reader.events()
    with pytest.raises(ToolError):
        reopen_run("run-", settings, None, H100)
    with reopen_run("run-", settings) as store:
        assert store.reader.events()[: len(events)] == events
        assert len(store.reader.events()) == len(events) + 1
