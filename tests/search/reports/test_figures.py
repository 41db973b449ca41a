"""The figures of a report: rounds, cost, pace."""

from pathlib import Path
from typing import Any

import pytest

from kopt.config.settings import Settings
from kopt.search.records.run_state import Event, EventKind
from kopt.search.reports.files import export_lines
from kopt.search.reports.history import judgements
from kopt.search.reports.pace import common, joined, measure_pace, seconds
from kopt.search.reports.run_list import list_runs
from kopt.search.reports.run_report import RunReport, report_run
from kopt.search.reports.sections import verdict
from kopt.search.reports.spending import sum_spend
from kopt.search.store.round_table import NewRound
from support.bench_results import H100
from support.populations import passed
from support.scripted_runs import new_store, start
from support.told_run import told_run


@pytest.fixture
def report(tmp_path: Path) -> RunReport:
    """Return the report of the told run."""
    with told_run(tmp_path) as store:
        return report_run(store.reader, store.folder)


def _call(**fields: Any) -> dict[str, Any]:
    known = {
        "role": "coder",
        "model": "m",
        "state": "done",
        "reserved_microusd": 900_000,
        "cost_microusd": 100_000,
        "input_tokens": 100,
        "cache_write_tokens": 0,
        "cache_read_tokens": 300,
        "output_tokens": 100,
        "latency_s": 1.0,
    }
    return known | fields


def test_rounds_tell_kind_best_beam_and_cost(report: RunReport) -> None:
    told = [
        (one.round, one.kind, one.passed, one.candidates, one.best, one.beam, one.cost_usd)
        for one in report.round_figures
    ]
    assert told == [
        (0, "start", 1, 1, 0, (0,), 0.0),
        (1, "agents", 2, 3, 1, (1, 3), 0.05),
        (2, "agents", 1, 1, 4, (4, 1), 0.0),
    ]


def test_candidates_tell_their_author_and_what_they_are_to_their_parents(
    report: RunReport,
) -> None:
    told = [(one.label, one.lineage, one.parents) for one in report.population]
    assert told == [
        ("0", "start", ()),
        ("r1b0", "expand", (0,)),
        ("r1b1", "expand", (0,)),
        ("r1b1f1", "fix", (2,)),
        ("r2b0", "refine", (1,)),
    ]


def test_lessons_are_those_of_the_reflector(report: RunReport) -> None:
    assert [(one.round, one.reflection.digest) for one in report.lessons] == [(1, "wider loads")]


def test_merges_and_promotions_are_told_with_their_reasons() -> None:
    def event(kind: EventKind, **data: Any) -> Event:
        return Event(seq=1, at_us=1, kind=kind, data={"candidate": 7, "why": "because", **data})

    events = [
        event(EventKind.COMBINED, kept=False),
        event(EventKind.PROMOTED, outcome="kept_existing"),
        event(EventKind.REFLECTED),
    ]
    told = [(one.candidate, one.what, one.outcome, one.why) for one in judgements(events)]
    assert told == [
        (7, "merge", "given_up", "because"),
        (7, "promotion", "kept_existing", "because"),
    ]


def test_cost_is_summed_by_role_and_set_against_the_gain(report: RunReport) -> None:
    spend = report.spend
    assert (spend.calls, spend.tokens, spend.cost_usd) == (6, 5600, 0.05)
    assert spend.roles[0].role == "coder" and spend.roles[0].failed == 1
    assert spend.gain_per_usd == pytest.approx(0.4 / 0.05)


def test_list_of_runs_tells_what_each_has_cost(tmp_path: Path) -> None:
    told_run(tmp_path).close()
    assert [run.spend.cost_usd for run in list_runs(Settings(tmp_path)).runs] == [0.05]


def test_call_of_unknown_end_counts_at_its_reservation() -> None:
    spend = sum_spend([_call(), _call(state="reserved", cost_microusd=None)], ratio=None)
    assert (spend.cost_usd, spend.unsettled) == (1.0, 1)
    assert spend.gain_per_usd is None and spend.log_speedup_per_mtok is None


def test_cached_share_is_of_all_prompt_tokens() -> None:
    assert sum_spend([_call()], ratio=2.0).cached_share == 0.75


def test_run_without_a_model_has_no_cost_and_no_gain_per_dollar() -> None:
    spend = sum_spend([], ratio=2.0)
    assert (spend.calls, spend.cost_usd, spend.gain_per_usd) == (0, 0.0, None)


def test_run_on_sim_has_no_busy_share(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        pace = measure_pace(store.reader)
    assert (pace.gpu_busy_share, pace.evaluations) == (None, 0)


def test_gpu_time_is_that_of_the_search_and_not_of_the_proof_of_its_winner(
    report: RunReport,
) -> None:
    assert (report.pace.gpu_s, report.pace.evaluations) == (2.0, 5)
    assert report.pace.evaluations_per_minute == pytest.approx(5.0)


class _Clock:
    """The Unix time of the store, in seconds, as the test sets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0
        monkeypatch.setattr("time.time_ns", lambda: self.now_s * 1_000_000_000)


def test_busy_share_is_of_the_time_in_which_a_candidate_was_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = _Clock(monkeypatch)
    with new_store(tmp_path, device="cuda:0", gpu=H100) as store:
        clock.now_s = 100  # a planner thinks: nothing is pending
        store.rounds.open(NewRound(0, "start", (start(),)))
        clock.now_s = 101  # the compiler
        lease = store.queue.lease_next("quick")
        assert lease is not None
        clock.now_s = 104
        store.queue.finish(lease, passed(1.0).model_copy(update={"gpu_seconds": 3.0}), 104.0)
        clock.now_s = 200
        store.rounds.close([0], None)
        pace = measure_pace(store.reader)
    assert (pace.pending_s, pace.gpu_s, pace.gpu_busy_share) == (4.0, 3.0, 0.75)


def test_time_between_two_sessions_is_not_pending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = _Clock(monkeypatch)
    with new_store(tmp_path, device="cuda:0", gpu=H100) as store:
        store.rounds.open(NewRound(0, "start", (start(),)))
        clock.now_s = 2
        store.pause("Ctrl-C", 2.0)
        clock.now_s = 30_000
        store.resume(store.reader.state().settings)
        lease = store.queue.lease_next("quick")
        assert lease is not None
        clock.now_s = 30_002
        store.queue.finish(lease, passed(1.0).model_copy(update={"gpu_seconds": 2.0}), 4.0)
        pace = measure_pace(store.reader)
    assert (pace.pending_s, pace.gpu_busy_share) == (4.0, 0.5)


def test_stretches_that_touch_are_one_and_only_common_time_counts() -> None:
    assert joined([(5, 9), (0, 2), (2, 4), (3, 3), (6, 7)]) == [(0, 4), (5, 9)]
    assert common([(0, 4), (5, 9)], [(3, 6)]) == [(3, 4), (5, 6)]
    assert seconds([(0, 1_000_000), (500_000, 2_000_000)]) == 2.0


def test_export_has_rounds_branches_and_calls(tmp_path: Path) -> None:
    with told_run(tmp_path) as store:
        lines = list(export_lines(store.reader, store.folder))
    kinds = [line.split('"')[3] for line in lines]
    assert (kinds.count("round"), kinds.count("branch"), kinds.count("llm_call")) == (3, 4, 6)


def test_search_that_goes_on_tells_its_leader_and_a_failed_one_none(report: RunReport) -> None:
    running = report.model_copy(update={"status": "running", "winner": None})
    assert verdict(running) == (
        "running: no candidate has passed the full check; best so far #4, measured 7.246 us,"
        " 1.380 times the speed of flashinfer (PDL on) (1.375 to 1.385)."
    )
    failed = running.model_copy(update={"status": "failed"})
    assert verdict(failed) == "failed: no candidate has passed the full check."
    estimated = running.model_copy(
        update={"best_speedup": None, "provenance": "estimated", "ratio": 1.4}
    )
    assert "1.40 times the start by estimated time." in verdict(estimated)
