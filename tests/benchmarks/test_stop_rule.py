"""Runs that are replayed under the stop rule of a plain copy: what is saved, what is kept."""

from collections.abc import Callable
from pathlib import Path

import pytest
from stop_rule import Replay, read_run, replay, run_folders, table

from kopt.config.search_settings import load_search_settings
from kopt.kernels.status import Provenance
from kopt.search.records.evaluation import COPY, Evaluation, EvaluationJob
from kopt.search.rounds.advance import run_search
from support.bench_results import H100
from support.populations import timed, with_value
from support.scripted_runs import new_store, search

COPY_US = 1.0
ON = load_search_settings()


def _second_is(best_us: float, copy_us: float | None) -> Callable[[EvaluationJob], Evaluation]:
    """Measure 2 us for the start, `best_us` for the second choice and 1.5 us for all others."""
    known: dict[str, int] = {}

    def answer(job: EvaluationJob) -> Evaluation:
        place = known.setdefault(str(sorted(job.tune.items())), len(known))
        latency_us = best_us if place == 1 else 1.5 if place else 2.0
        evaluation = timed(latency_us, 2.0 / latency_us)
        if copy_us is None:
            return evaluation
        return with_value(evaluation, COPY, copy_us, Provenance.MEASURED)

    return answer


def _stored(home: Path, best_us: float, copy_us: float | None = COPY_US) -> Path:
    """Return the folder of a finished run of seven candidates in three rounds."""
    off = load_search_settings().with_beam(1, 4).model_copy(update={"headroom_stop": "off"})
    with new_store(home, device="cuda:0", gpu=H100, search=off) as store:
        run_search(search(store, _second_is(best_us, copy_us)))
        return store.folder


def test_rounds_after_the_copy_was_reached_are_saved(tmp_path: Path) -> None:
    found = replay(read_run(_stored(tmp_path, best_us=1.01), {}), ON)
    assert (found.stopped_after, found.kept_evaluations, found.evaluations) == (1, 4, 7)
    assert found.kept == pytest.approx(1.0)


def test_a_leader_far_from_the_copy_is_left_to_the_gains(tmp_path: Path) -> None:
    found = replay(read_run(_stored(tmp_path, best_us=1.2), {}), ON)
    assert (found.stopped_after, found.saved) == (2, 0.0)


def test_runs_without_a_copy_take_it_from_the_file(tmp_path: Path) -> None:
    folder = _stored(tmp_path, best_us=1.01, copy_us=None)
    assert replay(read_run(folder, {}), ON).stopped_after is None
    found = replay(read_run(folder, {"made_up_b8": 1.0}), ON)
    assert (found.copy_us, found.stopped_after) == (1.0, 1)


def test_a_copy_of_the_run_s_own_gpu_counts_before_the_file(tmp_path: Path) -> None:
    folder = _stored(tmp_path, best_us=1.01)
    assert read_run(folder, {"made_up_b8": 0.5}) == read_run(folder, {})


def test_runs_are_found_by_their_folder_and_by_the_one_around_them(tmp_path: Path) -> None:
    folder = _stored(tmp_path, best_us=1.01)
    assert list(run_folders([folder])) == list(run_folders([folder.parent])) == [folder]


def test_totals_are_of_sums_and_say_what_was_lost() -> None:
    found = [
        Replay("a", 1.0, 1, evaluations=30, kept_evaluations=10, gain=1.0, kept_gain=0.9),
        Replay("b", None, None, evaluations=10, kept_evaluations=10, gain=0.5, kept_gain=0.5),
    ]
    text = table(found)
    assert "| a | 1.000 | round 1 | 30 | 10 | 67% | 1.000 | 90.0% |" in text
    assert "| b | unavailable | - | 10 | 10 | 0% | 0.500 | 100.0% |" in text
    assert "2 runs: 20 of 40 evaluations, 50.0% saved; 93.3% of the gain kept" in text
