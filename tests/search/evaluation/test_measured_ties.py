"""Runs on a GPU whose quick measurements cannot tell the best apart: a longer one decides."""

from collections import Counter
from pathlib import Path

import pytest

from kopt.kernels.status import Status
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.rounds.advance import run_search
from support.bench_results import H100
from support.populations import choices, failed, timed
from support.scripted_runs import new_store, search

TRUE_SPEEDUP = {64: 1.00, 128: 1.10, 256: 1.14}
NOISY = {64: 1.00, 128: 1.16, 256: 1.12}
"""What 100 pairs say: the second best looks best, within an interval that has room for both."""


def _answer(job: EvaluationJob) -> Evaluation:
    block = job.tune["BLOCK"]
    if job.level == "quick":
        return timed(1.0, NOISY[block] / job.tune["ROWS"], half_width=0.05)
    return timed(1.0, TRUE_SPEEDUP[block] / job.tune["ROWS"], half_width=0.01)


def test_longer_measurement_decides_who_leads_and_each_is_made_once(tmp_path: Path) -> None:
    jobs: list[EvaluationJob] = []

    def answer(job: EvaluationJob) -> Evaluation:
        jobs.append(job)
        return _answer(job)

    with new_store(tmp_path, device="cuda:0", gpu=H100) as store:
        state = run_search(search(store, answer))
        members = store.reader.members()
    ties = Counter(job.candidate for job in jobs if job.level == "tie")
    assert set(ties.values()) == {1}
    assert {members[seq].tune["BLOCK"] for seq in ties} >= {128, 256}
    assert members[state.beam[0]].tune == {"BLOCK": 256, "ROWS": 1}
    assert state.winner == state.beam[0]


def test_longer_measurement_has_more_pairs(tmp_path: Path) -> None:
    jobs: list[EvaluationJob] = []

    def answer(job: EvaluationJob) -> Evaluation:
        jobs.append(job)
        return _answer(job)

    with new_store(tmp_path, device="cuda:0", gpu=H100, search=choices(2, tie_pairs=1600)) as store:
        run_search(search(store, answer))
    pairs = {job.level: job.pairs for job in jobs}
    assert (pairs["quick"], pairs["tie"]) == (None, 1600)


@pytest.mark.parametrize("status", [Status.DATA_RACE, Status.QUARANTINED])
def test_who_fails_the_second_check_leaves_the_beam(tmp_path: Path, status: Status) -> None:
    def answer(job: EvaluationJob) -> Evaluation:
        if job.level == "tie" and job.tune["BLOCK"] == 256:
            return failed(status)
        return _answer(job)

    with new_store(tmp_path, device="cuda:0", gpu=H100) as store:
        state = run_search(search(store, answer))
        members = store.reader.members()
    assert members[state.beam[0]].tune == {"BLOCK": 128, "ROWS": 1}
    assert all(not members[seq].is_refuted for seq in state.beam)
