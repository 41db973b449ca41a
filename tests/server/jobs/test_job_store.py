"""Jobs as folders: durable, one holder each, readable by everybody who knows the id."""

import errno
import os
import stat
import time
from pathlib import Path

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.record import Record
from kopt.server.jobs.job_store import JOB_ID, KEPT_S, RESUMED_WITHIN_S, JobClaim, JobStore
from kopt.server.jobs.records import JobError, Progress
from support.job_works import QUICK


class Answer(Record):
    """A stage's record, as far as the store cares."""

    status: str = "passed"
    speedup: float = 1.5


@pytest.fixture
def store(settings: Settings) -> JobStore:
    return JobStore(settings.jobs_folder)


def age(claim: JobClaim, seconds: float) -> None:
    then = time.time() - seconds
    for path in claim.files.folder.iterdir():
        os.utime(path, (then, then))


def test_a_new_job_is_on_the_disk_and_held(store: JobStore, settings: Settings) -> None:
    claim = store.create(QUICK, "me")
    view = JobStore(settings.jobs_folder).view(claim.request.id)
    assert JOB_ID.fullmatch(view.request.id)
    assert (view.request.work, view.request.caller) == (QUICK, "me")
    assert (view.state, view.attempts, view.holder) == ("queued", 0, f"process {os.getpid()}")
    claim.release()


def test_jobs_of_one_second_are_listed_newest_first(store: JobStore) -> None:
    claims = [store.create(QUICK, "me") for _ in range(8)]
    newest_first = [claim.request.id for claim in reversed(claims)]
    assert store.newest("", 8) == newest_first
    assert store.newest("", 3) == newest_first[:3]
    for claim in claims:
        claim.release()


def test_only_the_user_may_look_into_a_job(store: JobStore) -> None:
    claim = store.create(QUICK, "me")
    assert stat.S_IMODE(claim.files.folder.stat().st_mode) == 0o700
    claim.release()


def test_a_held_job_is_claimed_by_nobody_else(store: JobStore, settings: Settings) -> None:
    claim = store.create(QUICK, "me")
    other = JobStore(settings.jobs_folder)
    assert other.claim(claim.request.id) is None
    assert other.orphans() == []
    claim.release()
    assert other.orphans() == [claim.request.id]
    taken = other.claim(claim.request.id)
    assert taken is not None
    assert store.claim(claim.request.id) is None
    taken.release()


def test_a_job_that_is_over_is_claimed_by_nobody(store: JobStore) -> None:
    claim = store.create(QUICK, "me")
    claim.files.write_result(Answer())
    claim.release()
    assert store.claim(claim.request.id) is None
    assert store.orphans() == []


def test_each_end_is_a_state(store: JobStore) -> None:
    done, failed, cancelled = (store.create(QUICK, "me") for _ in range(3))
    done.files.write_result(Answer())
    error = JobError(kind="machine", message="no compiler", hint="install one")
    failed.files.write_error(error)
    cancelled.files.write_cancelled()
    for claim in (done, failed, cancelled):
        claim.release()
    views = [store.view(claim.request.id) for claim in (done, failed, cancelled)]
    assert [view.state for view in views] == ["done", "failed", "cancelled"]
    assert views[0].result == {"status": "passed", "speedup": 1.5}
    assert views[1].error == error


def test_a_running_job_is_told_from_a_queued_one(store: JobStore) -> None:
    claim = store.create(QUICK, "me")
    claim.tell(running=True)
    claim.files.write_progress(Progress(done=2.0, message="compiling"))
    view = store.view(claim.request.id)
    assert (view.state, view.progress) == ("running", Progress(done=2.0, message="compiling"))
    claim.release()
    assert (store.view(claim.request.id).state, store.view(claim.request.id).holder) == (
        "queued",
        None,
    )


def test_a_number_that_is_none_is_null_in_the_result(store: JobStore) -> None:
    claim = store.create(QUICK, "me")
    claim.files.write_result(Answer(speedup=float("nan")))
    claim.release()
    assert store.view(claim.request.id).result == {"status": "passed", "speedup": None}


@pytest.mark.parametrize(
    "job_id", ["", "job-1", "../../etc/passwd", "job-20260101-000000-0000000g", "job-\0"]
)
def test_an_unknown_id_is_refused_with_what_ids_look_like(store: JobStore, job_id: str) -> None:
    with pytest.raises(ToolError, match="ids look like job-20260131-120000-0123abcd"):
        store.view(job_id)


def test_a_job_of_another_version_is_refused_and_left(store: JobStore) -> None:
    claim = store.create(QUICK, "me")
    claim.files.request.write_text('{"id": "x", "work": {"kind": "guess"}}', encoding="utf-8")
    claim.release()
    with pytest.raises(ToolError, match="another version of kopt: start the work again"):
        store.view(claim.request.id)
    with pytest.raises(ToolError, match="another version of kopt"):
        store.claim(claim.request.id)


def test_text_that_is_not_unicode_is_refused(store: JobStore) -> None:
    work = QUICK.model_copy(update={"source": "\ud800"})
    with pytest.raises(ToolError, match="not Unicode text"):
        store.create(work, "me")


def test_a_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file", encoding="utf-8")
    with pytest.raises(SetupError, match=r"cannot create .*home/jobs: .*set KOPT_HOME"):
        JobStore(tmp_path / "home" / "jobs").create(QUICK, "me")


def test_a_full_disk_is_named_and_leaves_no_half_job(
    store: JobStore, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(SetupError, match="No space left on device; free some space there"):
        store.create(QUICK, "me")
    assert list(settings.jobs_folder.iterdir()) == []


def test_jobs_that_ended_a_week_ago_are_swept(store: JobStore, settings: Settings) -> None:
    old, young, left, held = (store.create(QUICK, "me") for _ in range(4))
    old.files.write_result(Answer())
    young.files.write_result(Answer())
    for claim in (old, young, left):
        claim.release()
    for claim in (old, left, held):
        age(claim, KEPT_S + 60)
    assert store.sweep() == 2
    kept = {path.name for path in settings.jobs_folder.iterdir()}
    assert kept == {young.request.id, held.request.id}
    held.release()


def test_an_orphan_of_the_day_before_is_not_resumed(store: JobStore) -> None:
    claim = store.create(QUICK, "me")
    age(claim, RESUMED_WITHIN_S + 60)
    claim.release()
    assert store.orphans() == []


def test_attempts_are_counted_from_one(store: JobStore) -> None:
    claim = store.create(QUICK, "me")
    assert [claim.files.begin_attempt() for _ in range(3)] == [1, 2, 3]
    assert store.view(claim.request.id).attempts == 3
    claim.release()
