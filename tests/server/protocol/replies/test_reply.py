"""Replies to jobs without a result: what to do is always clear, and nothing leaks."""

import pytest
import yaml

from kopt.server.jobs.records import JobState
from kopt.server.protocol.replies.reply import facts_reply, job_reply
from support.bench_results import bench_result
from support.job_views import JOB_ID, done_job, failed_job, job, progress
from support.sound_replies import sound, text_of


@pytest.mark.parametrize("state", ["queued", "running"])
def test_job_at_work_says_how_far_it_is_and_how_to_wait(state: JobState) -> None:
    view = job(state, progress=progress("timing, 3 of 8"), holder="process 7", attempts=1)
    facts = sound(job_reply(view, "concise"))
    assert facts["status"] == state
    assert facts["job_id"] == JOB_ID
    assert facts["progress"]["message"] == "timing, 3 of 8"
    assert (facts["progress"]["done"], facts["progress"]["total"]) == (3, 8)
    assert f"Call job_wait with job_id={JOB_ID}" in facts["next"]
    assert "note" not in facts


def test_job_that_nobody_holds_says_so() -> None:
    facts = sound(job_reply(job("running"), "concise"))
    assert "no server works on it" in facts["note"]


def test_job_that_this_server_cannot_do_says_which_server_can() -> None:
    view = job("queued", needed_server="kopt serve --problems .../problems")
    facts = sound(job_reply(view, "concise"))
    assert "kopt serve --problems .../problems" in facts["note"]
    assert facts["next"].startswith("Ask the user to start kopt serve --problems")
    assert JOB_ID in facts["next"]


def test_second_attempt_is_told() -> None:
    view = job("running", holder="process 7", attempts=2)
    assert sound(job_reply(view, "concise"))["attempt"] == 2


def test_cancelled_job_is_no_error_and_says_how_to_start_anew() -> None:
    reply = job_reply(job("cancelled", tool="profile"), "concise")
    facts = sound(reply)
    assert not reply.is_error
    assert facts["status"] == "cancelled"
    assert "profile" in facts["next"]


RUN_ID = JOB_ID.replace("job-", "run-")


def test_step_at_work_names_the_run_that_it_began() -> None:
    facts = sound(job_reply(job("running", tool="beam_step", attempts=1, holder="x"), "concise"))
    assert facts["run_id"] == RUN_ID
    assert facts["next"].endswith(f"go on with run_id={RUN_ID}.")


def test_cancelled_step_is_gone_on_with_and_not_begun_anew() -> None:
    facts = sound(job_reply(job("cancelled", tool="beam_step", attempts=1), "concise"))
    assert facts["run_id"] == RUN_ID
    assert f"Call beam_step with run_id={RUN_ID} to go on" in facts["next"]


def test_cancelled_step_of_an_old_run_names_that_run() -> None:
    view = job("cancelled", tool="beam_step")
    work = view.request.work.model_copy(update={"kernel": None, "run_id": "run-old"})
    request = view.request.model_copy(update={"work": work})
    facts = sound(job_reply(view.model_copy(update={"request": request}), "concise"))
    assert facts["run_id"] == "run-old"
    assert "run_id=run-old to go on with what it had finished." in facts["next"]


def test_step_that_was_cancelled_before_it_began_has_no_run() -> None:
    facts = sound(job_reply(job("cancelled", tool="beam_step"), "concise"))
    assert "run_id" not in facts
    assert "run_id" not in facts["next"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("usage", "Change the arguments"),
        ("machine", "The candidate is not at fault"),
        ("bug", "Report it"),
    ],
)
def test_job_that_failed_is_an_error_with_what_to_do(kind: str, words: str) -> None:
    reply = job_reply(failed_job(kind, "no GPU is here", "try sim"), "concise")
    facts = sound(reply)
    assert reply.is_error
    assert facts["error"] == kind
    assert words in facts["next"]
    assert facts["next"] in yaml.safe_load(text_of(reply)).values()


def test_machine_without_the_gpu_that_was_asked_for_points_to_sim() -> None:
    failed = failed_job("machine", "no driver")
    on_gpu = failed.request.work.model_copy(update={"device": "cuda:0"})
    request = failed.request.model_copy(update={"work": on_gpu})
    elsewhere = job_reply(failed.model_copy(update={"request": request}), "concise")
    assert "device=sim" in sound(elsewhere)["next"]
    assert "device=sim" not in sound(job_reply(failed, "concise"))["next"]


def test_text_of_a_bug_stays_in_the_servers_log() -> None:
    secret = "KeyError: 'ANTHROPIC_API_KEY=abc' in /srv/kopt/private/file.py"
    reply = job_reply(failed_job("bug", secret, "see /srv/kopt/private"), "concise")
    assert "abc" not in text_of(reply)
    assert "private" not in text_of(reply)


def test_failure_of_the_machine_keeps_its_message_without_whose_home_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    view = failed_job("machine", "cannot write /home/ada/.kopt: disk full", "set KOPT_HOME")
    facts = sound(job_reply(view, "concise"))
    assert facts["message"] == "cannot write ~/.kopt: disk full"
    assert facts["hint"] == "set KOPT_HOME"


@pytest.mark.parametrize("schema", ["kopt.bench/2", "kopt.list/1", None])
def test_result_of_another_version_is_pointed_to(schema: str | None) -> None:
    document = bench_result().model_dump(mode="json", by_alias=True) | {"schema": schema}
    facts = sound(job_reply(done_job(document), "concise"))
    assert "another version" in facts["message"]
    assert f"kopt://jobs/{JOB_ID}/result" in facts["next"]


def test_result_with_a_field_that_is_not_known_is_pointed_to() -> None:
    document = bench_result().model_dump(mode="json", by_alias=True) | {"new_field": 1}
    facts = sound(job_reply(done_job(document), "concise"))
    assert "another version" in facts["message"]


def test_facts_of_a_tool_without_a_job_keep_their_length_and_end_with_next() -> None:
    document = "first line\n" + "x" * 20_000
    reply = facts_reply({"next": "Call compile.", "status": "passed", "results": [document]})
    facts = sound(reply, most_tokens=10_000)
    assert facts["results"] == [document]
    assert list(facts) == ["status", "results", "next"]
