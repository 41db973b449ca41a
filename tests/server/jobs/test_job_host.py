"""Jobs of one server: done, waited for, cancelled, killed."""

import os
import resource
import signal
from pathlib import Path

import anyio
import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.settings import Settings
from kopt.server.jobs import lane
from kopt.server.jobs.job_host import JobHost
from kopt.server.jobs.process_tree import ProcessKey, living, session_tree
from kopt.server.jobs.records import Progress, RunnerStart
from kopt.server.work.requests import CheckWork, Work
from support.job_works import (
    BOMB,
    IN_COMPILER,
    KERNEL,
    ON_SIM,
    QUICK,
    REFERENCE,
    SPINNING,
    trees,
    wait_until_told,
)

pytestmark = [pytest.mark.anyio, pytest.mark.slow]  # runner processes and their endings

BOUND_S = 60.0
_BUG = """
import kopt.tools.cuda.compile_stage as stage
def compile_candidate(request, settings): raise IndexError("off by one")
stage.compile_candidate = compile_candidate
"""
FREE_S = 1.0
"""A device is free again so soon after a cancel."""


async def test_a_job_comes_back_with_the_record_of_its_stage(host: JobHost) -> None:
    job_id = await host.submit(QUICK, "me")
    view = await host.wait(job_id, BOUND_S)
    assert (view.state, view.error, view.attempts) == ("done", None, 1)
    assert view.result is not None
    assert (view.result["schema"], view.result["status"]) == ("kopt.compile/1", "passed")
    assert view.result["kernel"] == KERNEL


async def test_progress_rises_each_time_and_names_the_step(host: JobHost) -> None:
    told: list[Progress] = []

    async def watch(progress: Progress) -> None:
        told.append(progress)

    work = CheckWork(kernel=KERNEL, source=REFERENCE, device="sim")
    view = await host.wait(await host.submit(work, "me"), 2 * BOUND_S, watch)
    assert view.state == "done"
    done = [progress.done for progress in told]
    assert done == sorted(set(done))
    assert any(ON_SIM in progress.message for progress in told)


async def test_a_mistake_of_the_caller_is_told_as_such(host: JobHost) -> None:
    view = await host.wait(await host.submit(CheckWork(kernel="no", source=""), "me"), BOUND_S)
    assert view.state == "failed"
    assert view.error is not None
    assert view.error.kind == "usage"
    assert "no kernel is called 'no'" in view.error.message


async def test_what_the_machine_lacks_is_told_as_such(settings: Settings) -> None:
    host = JobHost(Settings(home=settings.home, nvcc=Path("/nowhere/nvcc")))
    view = await host.wait(await host.submit(QUICK, "me"), BOUND_S)
    await host.close()
    assert view.error is not None
    assert (view.error.kind, "/nowhere/nvcc" in view.error.message) == ("machine", True)


async def test_a_bug_is_told_neutrally_and_its_traceback_is_kept(
    host: JobHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(_BUG, encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    view = await host.wait(await host.submit(QUICK, "me"), BOUND_S)
    assert view.error is not None, view.state
    assert view.error.kind == "bug"
    assert view.error.hint is not None
    log = Path(view.error.hint.rpartition(" in ")[2].rstrip("."))
    text = log.read_text("utf-8")
    assert text.startswith("Traceback")
    assert text.endswith("IndexError: off by one\n")


async def test_waiting_ends_in_time_and_leaves_the_job_going(host: JobHost) -> None:
    job_id = await host.submit(SPINNING, "me")
    assert (await host.wait(job_id, 0.0)).state == "queued"
    await wait_until_told(host, job_id, ON_SIM)
    assert (await host.wait(job_id, 0.1)).state == "running"


async def test_a_caller_that_leaves_does_not_end_the_job(host: JobHost) -> None:
    job_id = await host.submit(QUICK, "me")
    with anyio.move_on_after(0.01):
        await host.wait(job_id, BOUND_S)
    assert (await host.wait(job_id, BOUND_S)).state == "done"


@pytest.mark.parametrize(("work", "words"), [(SPINNING, ON_SIM), (BOMB, IN_COMPILER)])
async def test_a_cancelled_job_leaves_no_process(host: JobHost, work: Work, words: str) -> None:
    job_id = await host.submit(work, "me")
    members = await _sandboxed(host, job_id, words)
    with anyio.fail_after(FREE_S):
        view = await host.cancel(job_id)
    assert (view.state, view.holder) == ("cancelled", None)
    assert living(members) == frozenset()


async def test_a_job_that_has_not_begun_is_cancelled_at_once(settings: Settings) -> None:
    host = JobHost(Settings(home=settings.home, jobs=1))
    first = await host.submit(SPINNING, "me")
    second = await host.submit(SPINNING, "me")
    before = await host.view(second)
    assert before.progress is not None
    assert before.progress.message.startswith("queued for cpu, ")
    with anyio.fail_after(FREE_S):
        view = await host.cancel(second)
    assert (view.state, view.attempts) == ("cancelled", 0)
    assert not (await host.view(first)).is_over
    await host.close()


async def test_another_job_runs_after_a_cancelled_one(settings: Settings) -> None:
    host = JobHost(Settings(home=settings.home, jobs=1))
    spinning = await host.submit(SPINNING, "me")
    quick = await host.submit(QUICK, "me")
    await wait_until_told(host, spinning, ON_SIM)
    await host.cancel(spinning)
    assert (await host.wait(quick, BOUND_S)).state == "done"
    await host.close()


async def test_a_job_that_is_over_stays_as_it_is(host: JobHost) -> None:
    job_id = await host.submit(QUICK, "me")
    await host.wait(job_id, BOUND_S)
    assert (await host.cancel(job_id)).state == "done"


async def test_a_job_whose_runner_dies_is_tried_once_more(host: JobHost) -> None:
    job_id = await host.submit(SPINNING, "me")
    await wait_until_told(host, job_id, ON_SIM)
    _kill_runner(host)
    await wait_until_told(host, job_id, "beginning again")
    await wait_until_told(host, job_id, ON_SIM)
    _kill_runner(host)
    view = await host.wait(job_id, BOUND_S)
    assert view.error is not None, view.state
    assert (view.error.kind, view.attempts) == ("machine", 2)
    assert "signal 11, 2 times" in view.error.message


async def test_nothing_lives_on_after_the_host_is_closed(settings: Settings) -> None:
    host = JobHost(settings)
    job_id = await host.submit(SPINNING, "me")
    members = await _sandboxed(host, job_id, ON_SIM)
    await host.close()
    assert living(members) == frozenset()
    view = await JobHost(settings).view(job_id)
    assert (view.state, view.holder) == ("queued", None)


async def test_runners_that_are_killed_at_once_leave_nothing_running(host: JobHost) -> None:
    job_id = await host.submit(SPINNING, "me")
    members = await _sandboxed(host, job_id, ON_SIM)
    host.kill_all()
    with anyio.fail_after(2.0):
        while living(members):
            await anyio.sleep(0.01)


async def test_a_runner_that_is_idle_for_long_ends_and_the_next_job_gets_a_new_one(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lane, "IDLE_S", 0.01)
    host = JobHost(Settings(home=settings.home, jobs=1))
    for _ in range(2):
        assert (await host.wait(await host.submit(QUICK, "me"), BOUND_S)).state == "done"
        with anyio.fail_after(BOUND_S):
            while host.runner_pids:
                await anyio.sleep(0.01)
    await host.close()


async def test_an_unknown_job_is_refused_everywhere(host: JobHost) -> None:
    for answer in (host.view("job-1"), host.cancel("job-1"), host.wait("job-1", 1.0)):
        with pytest.raises(ToolError, match="no job 'job-1'"):
            await answer


async def test_a_home_that_cannot_be_written_refuses_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    host = JobHost(Settings(home=tmp_path / "file"))
    await host.start()
    with pytest.raises(SetupError, match="set KOPT_HOME"):
        await host.submit(QUICK, "me")
    await host.close()


async def test_a_result_that_the_disk_does_not_take_is_a_fault_of_the_machine(
    host: JobHost,
) -> None:
    await host.wait(await host.submit(QUICK, "me"), BOUND_S)
    for process in trees(host.runner_pids):
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, 0))
    job_id = await host.submit(QUICK, "me")
    view = await host.wait(job_id, BOUND_S)
    assert view.error is not None, view.state
    assert (view.state, view.error.kind) == ("failed", "machine")
    assert "File too large" in view.error.message
    assert (await host.cancel(job_id)).state == "failed"


async def test_runners_get_no_secrets(host: JobHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-1")
    monkeypatch.setenv("GITHUB_TOKEN", "gh-1")
    monkeypatch.setenv("PIP_INDEX_URL", "https://me:word@example.org/simple")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    await host.wait(await host.submit(QUICK, "me"), BOUND_S)
    for process in trees(host.runner_pids):
        entries = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        names = {entry.partition(b"=")[0] for entry in entries}
        assert names.isdisjoint({b"ANTHROPIC_API_KEY", b"GITHUB_TOKEN", b"PIP_INDEX_URL"})
        assert {b"PATH", b"CUDA_VISIBLE_DEVICES"} <= names


def test_what_a_runner_is_sent_has_no_key_of_a_service(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, pinecone_api_key="made-up-key")
    sent = RunnerStart(settings=settings).model_dump_json()
    assert "made-up-key" not in sent
    assert RunnerStart.model_validate_json(sent).settings == Settings(home=tmp_path)


async def _sandboxed(host: JobHost, job_id: str, words: str) -> frozenset[ProcessKey]:
    """Return all processes of a job once its sandbox runs."""
    await wait_until_told(host, job_id, words)
    with anyio.fail_after(BOUND_S):
        # Guard and runner, then the sandbox, the launcher in it, and the program itself.
        while len(members := trees(host.runner_pids)) < 5:
            await anyio.sleep(0.01)
    return members


def _kill_runner(host: JobHost) -> None:
    """Let the runner, not its guard, die of a segmentation fault."""
    (guard,) = host.runner_pids
    runners = [
        process.pid
        for process in session_tree(guard)
        if b"kopt.server.jobs.runner" in Path(f"/proc/{process.pid}/cmdline").read_bytes()
        and process.pid != guard
    ]
    for pid in runners:
        os.kill(pid, signal.SIGSEGV)
