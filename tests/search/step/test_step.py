"""Steps: rounds of the caller's candidates or the proposer's, on runs in any state."""

from pathlib import Path

import pytest

from kopt.config.errors import InfraError, SetupError, ToolError
from kopt.config.folder_owner import may_see
from kopt.kernels.status import Status
from kopt.search.records.evaluation import Evaluation, EvaluationJob
from kopt.search.records.members import StepCandidate
from kopt.search.reports.run_list import list_runs
from kopt.search.reports.run_report import view_run
from kopt.search.runs.parts import RunPlace
from kopt.search.runs.run import RunRequest, begin_run, drive_run, open_run, reopen_run
from kopt.search.step.result import StepHooks
from kopt.search.store.run_lock import is_run_locked
from support.scripted_steps import KERNEL, Steps, answer, candidate, reference

A, B, C = candidate(5.0, "a"), candidate(4.0, "b"), candidate(3.0, "c", family="reduction")


@pytest.fixture
def steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Steps:
    """Return steps in a home of their own."""
    made = Steps(tmp_path / "home")
    made.install(monkeypatch.setattr)
    return made


def test_kernel_begins_a_run_whose_round_0_is_the_reference(steps: Steps) -> None:
    result = steps.take(A, B, kernel=KERNEL)
    assert [job.source for job in steps.jobs] == [reference(), A.source, B.source]
    assert (result.status, result.round) == ("paused", 1)
    assert [(one.seq, one.status, one.repeats) for one in result.candidates] == [
        (1, Status.PASSED, False),
        (2, Status.PASSED, False),
    ]
    assert [(member.rank, member.seq) for member in result.beam] == [(1, 2), (2, 1), (3, 0)]
    assert result.gain == pytest.approx(9.0 / 4.0 - 1.0)


def test_step_leaves_the_run_paused_and_unlocked(steps: Steps) -> None:
    run = steps.take(A, kernel=KERNEL).run
    assert [summary.status for summary in list_runs(steps.settings).runs] == ["paused"]
    assert not is_run_locked(steps.settings.runs / run)


def test_run_is_its_owners_whoever_goes_on_with_it(steps: Steps) -> None:
    run = steps.take(A, kernel=KERNEL, owner="token:1").run
    steps.take(B)
    folder = steps.settings.runs / run
    assert [may_see(owner, folder) for owner in ("token:1", "token:2", "")] == [
        True,
        False,
        True,
    ]


def test_events_of_earlier_steps_are_told_before_the_step_begins(steps: Steps) -> None:
    told: list[int] = []
    hooks = StepHooks(on_past=lambda events: told.append(len(events)))
    steps.take(A, kernel=KERNEL)
    steps.take(B, hooks=hooks)
    assert len(told) == 1 and told[0] > 1


def test_what_the_author_said_is_kept(steps: Steps) -> None:
    said = candidate(4.0, hypothesis="wide loads", family="reduction", parents=(0,))
    steps.take(said, kernel=KERNEL)
    with view_run("run-", steps.settings) as (reader, _):
        member = reader.members()[1]
        (link,) = reader.table("lineage")
    assert (member.note, member.family, member.parents) == ("wide loads", "reduction", (0,))
    assert link["kind"] == "expand"


def test_note_and_family_of_the_header_stand_where_nothing_is_said(steps: Steps) -> None:
    source = A.source.replace("family: other", "family: [coarsening, reduction]")
    (one,) = steps.take(StepCandidate(source=source), kernel=KERNEL).candidates
    assert one.family == "coarsening" and one.note.startswith("starting point:")


def test_known_candidate_is_told_its_number_and_not_evaluated_again(steps: Steps) -> None:
    steps.take(A, kernel=KERNEL)
    before = len(steps.jobs)
    result = steps.take(B, A, B)
    assert [(one.seq, one.repeats) for one in result.candidates] == [
        (2, False),
        (1, True),
        (2, True),
    ]
    assert [job.source for job in steps.jobs[before:]] == [B.source]


def test_the_reference_itself_is_known(steps: Steps) -> None:
    result = steps.take(StepCandidate(source=reference()), kernel=KERNEL)
    assert [(one.seq, one.repeats) for one in result.candidates] == [(0, True)]
    assert len(steps.jobs) == 1 and "as #0" in result.message


def test_broken_header_is_for_the_evaluation_to_report(steps: Steps) -> None:
    broken = StepCandidate(source="no header\n// ends: plan_error\n")
    (one,) = steps.take(broken, kernel=KERNEL).candidates
    assert (one.status, one.family) == (Status.PLAN_ERROR, "other")


def test_failed_candidate_is_data(steps: Steps) -> None:
    result = steps.take(candidate(Status.COMPILE_ERROR), candidate(Status.DATA_RACE), kernel=KERNEL)
    assert [one.status for one in result.candidates] == [Status.COMPILE_ERROR, Status.DATA_RACE]
    assert [one.reason for one in result.retired] == ["failed", "failed"]
    assert result.next == "fix" and result.suggestions[0].parents == (1,)


def test_without_candidates_the_proposer_fills_the_round(steps: Steps) -> None:
    result = steps.take(kernel=KERNEL)
    assert [one.tune["BLOCK"] for one in result.candidates] != []
    assert {one.proposer for one in result.candidates} == {"sweep"}
    assert result.proposer_ideas == 0 and result.next == "finish"


def test_proposer_out_of_ideas_leads_to_the_full_check_and_a_winner(steps: Steps) -> None:
    steps.take(kernel=KERNEL)
    result = steps.take()
    assert (result.status, result.stop_reason, result.next) == ("done", "exhausted", "verify")
    assert steps.jobs[-1].level == "full" and result.winner == result.beam[0].seq
    assert "BLOCK: [1024" in Path(result.winner_path or "").read_text("utf-8")
    assert result.winner_tune["BLOCK"] == 1024


def test_rounds_that_are_spent_end_a_run_without_candidates_only(steps: Steps) -> None:
    steps.take(A, kernel=KERNEL, rounds=1)
    assert steps.take(B).round == 2
    result = steps.take()
    assert (result.stop_reason, result.stop_detail) == ("rounds", "its round is done")
    assert result.winner == 2


def test_small_gain_ends_no_stepped_run(steps: Steps) -> None:
    steps.take(A, kernel=KERNEL)
    result = steps.take(candidate(4.99))
    assert (result.status, result.stop_reason) == ("paused", None)


def test_finished_run_is_reported_as_it_is(steps: Steps) -> None:
    steps.take(kernel=KERNEL)
    steps.take()
    with view_run("run-", steps.settings) as (reader, _):
        events = reader.events()
        assert steps.take().status == "done"
        assert reader.events() == events


def test_candidates_open_a_finished_run_again(steps: Steps) -> None:
    steps.take(kernel=KERNEL)
    old = steps.take().winner
    result = steps.take(A)
    assert (result.status, result.winner, result.stop_reason) == ("paused", None, None)
    assert result.beam[0].seq == result.candidates[0].seq != old
    assert steps.take().winner == result.beam[0].seq


def test_known_candidates_leave_a_finished_run_finished(steps: Steps) -> None:
    steps.take(A, kernel=KERNEL, rounds=1)
    winner = steps.take().winner
    result = steps.take(A)
    assert (result.status, result.winner) == ("done", winner)
    assert [one.repeats for one in result.candidates] == [True]


def test_kopt_run_and_steps_drive_one_run_in_turns(steps: Steps) -> None:
    with begin_run(RunRequest(kernel=KERNEL), steps.settings) as store:
        assert drive_run(store, RunPlace(steps.site)).status == "done"
    stepped = steps.take(C)
    with reopen_run(stepped.run, steps.settings) as store:
        state = drive_run(store, RunPlace(steps.site))
        assert (state.status, state.winner) == ("done", stepped.candidates[0].seq)


def test_loop_opens_no_round_beyond_the_limit_that_steps_have_passed(steps: Steps) -> None:
    steps.take(A, kernel=KERNEL, rounds=1)
    steps.take(B)
    with reopen_run("run-", steps.settings) as store:
        assert drive_run(store, RunPlace(steps.site)).stop_reason == "rounds"
        assert len(store.reader.members()) == 3


def test_run_that_never_got_its_first_round_gets_it(steps: Steps) -> None:
    begin_run(RunRequest(kernel=KERNEL), steps.settings).close()
    assert [one.seq for one in steps.take(A).beam] == [1, 0]


def test_interrupted_step_keeps_what_was_finished_and_is_finished_by_the_same_call(
    steps: Steps,
) -> None:
    def interrupted(job: EvaluationJob) -> Evaluation:
        if job.source == B.source:
            raise KeyboardInterrupt
        return answer(job)

    steps.answer = interrupted
    with pytest.raises(KeyboardInterrupt):
        steps.take(A, B, kernel=KERNEL)
    assert [summary.status for summary in list_runs(steps.settings).runs] == ["paused"]
    steps.answer, steps.jobs[:] = answer, []
    result = steps.take(A, B)
    assert [job.source for job in steps.jobs] == [B.source]
    assert [(one.seq, one.repeats) for one in result.candidates] == [(1, False), (2, False)]
    assert result.round == 1


def test_open_round_is_finished_before_other_candidates(steps: Steps) -> None:
    _leave_a_round_open(steps)
    result = steps.take(C)
    assert [job.source for job in steps.jobs] == [A.source, C.source]
    assert result.round == 2 and [one.seq for one in result.candidates] == [2]


def test_open_round_is_the_step_of_who_brings_no_candidates(steps: Steps) -> None:
    _leave_a_round_open(steps)
    result = steps.take()
    assert (result.round, [one.seq for one in result.candidates]) == (1, [1])


def _leave_a_round_open(steps: Steps) -> None:
    def lacking(job: EvaluationJob) -> Evaluation:
        if job.source == A.source:
            raise SetupError("no compiler")
        return answer(job)

    steps.answer = lacking
    with pytest.raises(SetupError):
        steps.take(A, kernel=KERNEL)
    steps.answer, steps.jobs[:] = answer, []


def test_same_key_is_the_same_step(steps: Steps) -> None:
    first = steps.take(A, kernel=KERNEL, key="job-1")
    assert first.run == "run-1"
    again = steps.take(A, kernel=KERNEL, key="job-1")
    assert [one.repeats for one in again.candidates] == [False]
    swept = steps.take(key="job-2")
    steps.take(B)
    assert steps.take(key="job-2").round == swept.round
    assert steps.take(key="job-2").candidates[0].seq == swept.candidates[0].seq
    assert len(list_runs(steps.settings).runs) == 1


def test_key_of_a_run_of_another_kernel_is_refused(steps: Steps) -> None:
    steps.take(A, kernel=KERNEL, key="1")
    with pytest.raises(ToolError, match=f"is a run of {KERNEL}"):
        steps.take(kernel="add_rmsnorm_fp4quant_b128xh2048", key="1")


def test_second_caller_waits_until_the_first_is_done(steps: Steps) -> None:
    held = open_run(steps.take(A, kernel=KERNEL).run, steps.settings)
    told: list[str] = []

    def release(text: str) -> None:
        told.append(text)
        held.close()

    result = steps.take(B, hooks=StepHooks(say=release), lock_wait_s=60.0)
    assert result.candidates[0].seq == 2
    assert "(kopt run); waiting" in told[0]


def test_machine_failure_is_tried_again_and_never_a_status(steps: Steps) -> None:
    failures = iter([True])

    def shaky(job: EvaluationJob) -> Evaluation:
        if job.source == A.source and next(failures, False):
            raise InfraError("worker died")
        return answer(job)

    steps.answer = shaky
    assert steps.take(A, kernel=KERNEL).candidates[0].status is Status.PASSED
