"""The local evaluator's threads: several jobs at once, an end without waiting, errors handed on."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.search.evaluation import local_evaluator
from kopt.search.evaluation.evaluation_site import EvaluationSite
from kopt.search.evaluation.local_evaluator import LocalEvaluator
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.storage.artifacts import open_artifacts
from kopt.tools.sim.device import SimDevice
from support.populations import SOURCE, passed

TIME_LIMIT_S = 30.0


def _job(number: int) -> EvaluationJob:
    return EvaluationJob(
        id=str(number),
        kernel="made_up_b8",
        source=SOURCE,
        source_name="k.cu",
        tune={},
        level="quick",
        arch="sm_100a",
    )


def _evaluator(
    home: Path, monkeypatch: pytest.MonkeyPatch, work: Callable[[EvaluationJob], Evaluation]
) -> LocalEvaluator:
    def stand_in(job: EvaluationJob, *_: object) -> Evaluation:
        return work(job)

    monkeypatch.setattr(local_evaluator, "evaluate_job", stand_in)
    settings = Settings(home, jobs=2)
    return LocalEvaluator(EvaluationSite(SimDevice(settings), None, settings, open_artifacts(home)))


def test_as_many_jobs_run_at_once_as_settings_allow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=TIME_LIMIT_S)

    def work(job: EvaluationJob) -> Evaluation:
        both.wait()
        return passed(float(job.id))

    evaluator = _evaluator(tmp_path, monkeypatch, work)
    futures = [evaluator.submit(_job(number)) for number in (1, 2)]
    latencies = [future.result(TIME_LIMIT_S).latency for future in futures]
    assert [latency.value for latency in latencies if latency] == [1.0, 2.0]
    evaluator.close()


class _Pool(SimDevice):
    """A device that is several."""

    evaluators = 3


def test_a_pool_gets_two_jobs_for_each_evaluator_and_more_when_it_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_eight = threading.Barrier(8, timeout=TIME_LIMIT_S)

    def work(job: EvaluationJob, *_: object) -> Evaluation:
        all_eight.wait()
        return passed(float(job.id))

    monkeypatch.setattr(local_evaluator, "evaluate_job", work)
    settings = Settings(tmp_path, jobs=2)
    pool = _Pool(settings)
    evaluator = LocalEvaluator(EvaluationSite(pool, None, settings, open_artifacts(tmp_path)))
    assert evaluator.slots == 6
    futures = [evaluator.submit(_job(number)) for number in range(1, 9)]
    pool.evaluators = 4
    assert evaluator.slots == 8
    assert all(future.result(TIME_LIMIT_S).latency for future in futures)
    evaluator.close()


def test_error_of_the_machine_comes_out_of_the_future(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(job: EvaluationJob) -> Evaluation:
        raise SetupError("no nvcc")

    evaluator = _evaluator(tmp_path, monkeypatch, work)
    with pytest.raises(SetupError, match="no nvcc"):
        evaluator.submit(_job(1)).result(TIME_LIMIT_S)
    evaluator.close()


def test_close_drops_what_waits_and_does_not_wait_for_what_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = threading.Semaphore(0)
    release = threading.Event()

    def work(job: EvaluationJob) -> Evaluation:
        begun.release()
        release.wait(TIME_LIMIT_S)
        return passed(1.0)

    evaluator = _evaluator(tmp_path, monkeypatch, work)
    futures = [evaluator.submit(_job(number)) for number in range(3)]
    for _ in range(2):
        assert begun.acquire(timeout=TIME_LIMIT_S)
    evaluator.close(grace_s=0.0)
    assert futures[2].cancelled() and not futures[0].done()
    release.set()
    assert futures[0].result(TIME_LIMIT_S).latency is not None
