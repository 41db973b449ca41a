"""The beam loop: what it finds, when it stops, what an interruption leaves."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.errors import InfraError, SetupError
from kopt.kernels.status import Status
from kopt.search.records.budget import Budget
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.records.run_state import EventKind
from kopt.search.rounds.advance import run_search
from kopt.search.store.evaluation_queue import QUARANTINE_AFTER, Lease
from kopt.search.store.round_table import NewRound
from kopt.search.store.store import RunStore
from kopt.search.store.winner import winner_path
from support.populations import failed, passed
from support.scripted_runs import GRID, final_state, new_store, scripted_answer, search, settings


def test_the_best_choice_of_the_grid_wins(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        state = run_search(search(store))
        assert state.status == "done" and state.winner is not None
        winner = store.reader.members()[state.winner]
        assert winner.tune == {"BLOCK": 256, "ROWS": 2}
        assert winner.full is not None and winner.full.status is Status.PASSED


def test_winner_file_has_the_winning_defaults_and_all_else_unchanged(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        run_search(search(store))
        text = winner_path(store.folder).read_text("utf-8")
    assert "tune: {BLOCK: [256, 128, 64], ROWS: [2, 1, 4]}   # the first is the default" in text
    assert text.endswith('extern "C" __global__ void k(float* x) {}\n')


def test_many_slots_record_the_same_run_as_one(tmp_path: Path) -> None:
    with new_store(tmp_path, "run-1") as one, new_store(tmp_path, "run-2") as four:
        run_search(search(one))
        run_search(search(four, slots=4))
        assert final_state(one) == final_state(four)


def test_running_a_finished_run_again_changes_nothing(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        run_search(search(store))
        events = store.reader.events()
        run_search(search(store))
        assert store.reader.events() == events


def test_no_passing_candidate_fails_the_run_and_says_so(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        state = run_search(search(store, lambda _: failed(Status.LAUNCH_ERROR)))
        assert (state.status, state.winner) == ("failed", None)
        assert state.stop_detail == "none of the first 7 candidates passed"


@pytest.mark.parametrize("status", [Status.COMPILE_ERROR, Status.INCORRECT, Status.DATA_RACE])
def test_start_that_no_value_mends_is_not_swept(tmp_path: Path, status: Status) -> None:
    with new_store(tmp_path) as store:
        state = run_search(search(store, lambda _: failed(status)))
        assert (state.status, len(store.reader.members())) == ("failed", 1)
        assert state.stop_detail == f"the starting kernel is {status}, which no tune value fixes"


@pytest.mark.parametrize("status", [Status.PLAN_ERROR, Status.LAUNCH_ERROR])
def test_other_values_are_tried_when_the_default_does_not_fit(
    tmp_path: Path, status: Status
) -> None:
    def answer(job: EvaluationJob) -> Evaluation:
        return failed(status) if job.tune["BLOCK"] == GRID["BLOCK"][0] else passed(2.0)

    with new_store(tmp_path) as store:
        assert run_search(search(store, answer)).status == "done"


def test_candidate_that_fails_the_full_check_does_not_win(tmp_path: Path) -> None:
    def answer(job: EvaluationJob) -> Evaluation:
        if job.level == "full" and job.tune == {"BLOCK": 256, "ROWS": 2}:
            return failed(Status.DATA_RACE)
        return scripted_answer(job)

    with new_store(tmp_path) as store:
        state = run_search(search(store, answer))
        assert state.winner is not None
        assert store.reader.members()[state.winner].tune == {"BLOCK": 256, "ROWS": 1}


def test_no_more_than_the_beam_and_the_start_are_put_to_the_full_check(tmp_path: Path) -> None:
    start = {name: values[0] for name, values in GRID.items()}

    def answer(job: EvaluationJob) -> Evaluation:
        if job.level == "full":
            return failed(Status.DATA_RACE)
        return passed(1.7) if job.tune == start else scripted_answer(job)

    with new_store(tmp_path) as store:
        assert run_search(search(store, answer)).status == "failed"
        checked = [one.tune for one in store.reader.members() if one.full is not None]
    assert checked == [start, {"BLOCK": 256, "ROWS": 1}, {"BLOCK": 256, "ROWS": 2}]


def test_choices_that_leave_a_part_of_the_domain_out_take_no_finalist_s_place(
    tmp_path: Path,
) -> None:
    fits = {"BLOCK": 128, "ROWS": 1}  # the fourth best, of a beam of two

    def answer(job: EvaluationJob) -> Evaluation:
        if job.level == "full" and job.tune != fits:
            return failed(Status.PLAN_ERROR)
        return scripted_answer(job)

    with new_store(tmp_path) as store:
        state = run_search(search(store, answer))
        assert state.winner is not None
        assert store.reader.members()[state.winner].tune == fits


def test_start_is_the_last_to_be_tried_as_winner(tmp_path: Path) -> None:
    def answer(job: EvaluationJob) -> Evaluation:
        if job.level == "full" and job.tune != {"BLOCK": 64, "ROWS": 1}:
            return failed()
        return scripted_answer(job)

    with new_store(tmp_path) as store:
        assert run_search(search(store, answer)).winner == 0


def test_round_that_gains_little_stops_the_search_and_names_the_provenance(tmp_path: Path) -> None:
    def answer(job: EvaluationJob) -> Evaluation:
        return passed(1.0 if job.tune["BLOCK"] == 64 else 0.99)

    with new_store(tmp_path) as store:
        state = run_search(search(store, answer))
    assert state.stop_reason == "early_stop"
    assert state.stop_detail == "round 1 improved the best by 1.0% in estimated time, less than 3%"


def test_evaluation_budget_is_never_exceeded(tmp_path: Path) -> None:
    with new_store(tmp_path, budget=Budget(evaluations=4)) as store:
        state = run_search(search(store))
        assert (state.status, len(store.reader.members())) == ("budget", 4)
        assert state.winner is not None


def test_time_budget_counts_earlier_sessions(tmp_path: Path) -> None:
    ticks = iter(range(0, 100_000, 2))
    with new_store(tmp_path, budget=Budget(seconds=30.0)) as store:
        timed = search(store)
        state = run_search(
            type(timed)(store, timed.evaluator, timed.proposer, timed.start, lambda: next(ticks))
        )
        assert state.stop_reason == "budget" and 30.0 <= state.spent_s < 60.0
        assert state.winner is not None


def test_time_of_the_first_evaluation_is_told_and_counts_towards_no_budget(
    tmp_path: Path,
) -> None:
    now = [0.0]

    def answer(job: EvaluationJob) -> Evaluation:
        took = 60.0 if now[0] == 0.0 else 4.0
        now[0] += took
        return scripted_answer(job).model_copy(update={"elapsed_s": took})

    with new_store(tmp_path, budget=Budget(seconds=10.0)) as store:
        state = run_search(replace(search(store, answer), clock=lambda: now[0]))
        quick = [member for member in store.reader.members() if member.quick is not None]
        assert (state.stop_detail, len(quick)) == ("10 s are spent", 4)
        assert state.spent_s >= 72.0
        (told,) = [e for e in store.reader.events() if e.kind is EventKind.BUDGET_BEGUN]
        assert told.data == {"preparing_s": 60.0, "budget_s": 10.0}


def test_larger_budget_goes_on_where_the_smaller_ended(tmp_path: Path) -> None:
    with new_store(tmp_path, budget=Budget(evaluations=4)) as store:
        run_search(search(store))
        store.resume(settings(budget=Budget()))
        state = run_search(search(store))
        assert (state.status, len(store.reader.members())) == ("done", 9)


def test_interrupt_leaves_a_paused_run_without_leases(tmp_path: Path) -> None:
    def answer(job: EvaluationJob) -> Evaluation:
        if job.tune["BLOCK"] == 128:
            raise KeyboardInterrupt
        return scripted_answer(job)

    with new_store(tmp_path) as store:
        with pytest.raises(KeyboardInterrupt):
            run_search(search(store, answer))
        assert store.reader.state().status == "paused"
        assert all(row["state"] != "leased" for row in store.reader.table("evaluation"))


def test_interrupted_run_ends_like_an_uninterrupted_one(tmp_path: Path) -> None:
    calls = iter(range(1000))

    def answer(job: EvaluationJob) -> Evaluation:
        if next(calls) == 5:
            raise KeyboardInterrupt
        return scripted_answer(job)

    with new_store(tmp_path, "run-1") as whole, new_store(tmp_path, "run-2") as cut:
        run_search(search(whole))
        with pytest.raises(KeyboardInterrupt):
            run_search(search(cut, answer))
        cut.resume(settings())
        run_search(search(cut, answer))
        assert final_state(cut) == final_state(whole)


def test_machine_without_a_compiler_pauses_the_run(tmp_path: Path) -> None:
    def answer(job: EvaluationJob) -> Evaluation:
        raise SetupError("no nvcc")

    with new_store(tmp_path) as store:
        with pytest.raises(SetupError):
            run_search(search(store, answer))
        assert store.reader.state().status == "paused"


def test_evaluation_is_repeated_after_the_machine_failed(tmp_path: Path) -> None:
    failures = iter([True, True])

    def answer(job: EvaluationJob) -> Evaluation:
        if next(failures, False):
            raise InfraError("worker died")
        return scripted_answer(job)

    with new_store(tmp_path) as store:
        run_search(search(store, answer))
        assert all(m.quick is not None for m in store.reader.members())
        assert store.reader.table("evaluation")[0]["infra_failures"] == 2


def test_candidate_that_takes_workers_down_is_quarantined(tmp_path: Path) -> None:
    def answer(job: EvaluationJob) -> Evaluation:
        if job.tune == {"BLOCK": 128, "ROWS": 1}:
            raise InfraError("worker died")
        return scripted_answer(job)

    with new_store(tmp_path) as store:
        state = run_search(search(store, answer))
        assert state.status == "done"
        (row,) = [r for r in store.reader.table("evaluation") if r["status"] == "quarantined"]
        assert row["infra_failures"] == QUARANTINE_AFTER


def test_every_event_reaches_the_subscriber_in_order(tmp_path: Path) -> None:
    heard: list[int] = []
    with new_store(tmp_path) as store:
        run_search(search(store), lambda event: heard.append(event.seq))
        # The first event belongs to the beginning of the run, before anyone listened.
        assert heard == [event.seq for event in store.reader.events()][1:]
        assert store.reader.events()[-1].kind is EventKind.RUN_FINISHED


def test_late_result_is_dropped(tmp_path: Path) -> None:
    with new_store(tmp_path) as store:
        late = _lease_start(store)
        store.resume(settings())
        current = store.queue.lease_next("quick")
        assert current is not None and not store.queue.finish(late, passed(1.0), 0.0)
        assert store.queue.finish(current, passed(2.0), 0.0)
        assert not store.queue.finish(current, passed(3.0), 0.0)
        assert store.reader.members()[0].latency_us == 2.0


def _lease_start(store: RunStore) -> Lease:
    store.rounds.open(NewRound(0, "start", (search(store).start,)))
    lease = store.queue.lease_next("quick")
    assert lease is not None
    return lease
