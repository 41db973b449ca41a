"""Several servers over one KOPT_HOME, and servers that are killed."""

import anyio
import pytest

from kopt.config.folder_owner import may_see
from kopt.config.settings import Settings
from kopt.server.jobs.job_host import JobHost
from kopt.server.jobs.job_store import JobStore
from kopt.server.jobs.process_tree import ProcessKey, living, session_tree
from kopt.server.work.requests import StepWork, SubmittedCandidate
from support.job_server import JobServer
from support.job_works import (
    BOMB,
    IN_COMPILER,
    KERNEL,
    ON_SIM,
    QUICK,
    REFERENCE,
    SPINNING,
    wait_until_told,
)

pytestmark = [pytest.mark.anyio, pytest.mark.slow]  # whole server processes

BOUND_S = 60.0


async def _grown_tree(server: JobServer) -> frozenset[ProcessKey]:
    """Return the server, its runner and guard, and what is in the sandbox: 6 at least."""
    members = session_tree(server.process.pid)
    with anyio.fail_after(BOUND_S):
        while len(members) < 6:
            await anyio.sleep(0.01)  # gives way, so that the limit can strike
            members = session_tree(server.process.pid)
    return members


async def test_a_server_waits_for_the_job_of_another(host: JobHost, settings: Settings) -> None:
    other = JobHost(settings)
    view = await other.wait(await host.submit(QUICK, "me"), BOUND_S)
    assert (view.state, view.attempts) == ("done", 1)
    assert other.runner_pids == []
    await other.close()


async def test_a_server_cancels_the_job_of_another(host: JobHost, settings: Settings) -> None:
    job_id = await host.submit(SPINNING, "me")
    await wait_until_told(host, job_id, ON_SIM)
    runners = host.runner_pids
    other = JobHost(settings)
    with anyio.fail_after(2.0):
        assert (await other.cancel(job_id)).state == "cancelled"
    assert all(not living(session_tree(pid)) for pid in runners)
    assert (await host.view(job_id)).state == "cancelled"
    await other.close()


async def test_progress_of_another_servers_job_is_seen(host: JobHost, settings: Settings) -> None:
    other = JobHost(settings)
    job_id = await host.submit(SPINNING, "me")
    await wait_until_told(other, job_id, ON_SIM)
    assert (await other.view(job_id)).state == "running"
    await other.close()


async def test_each_orphan_is_resumed_by_exactly_one_server(settings: Settings) -> None:
    store = JobStore(settings.jobs_folder)
    jobs: list[str] = []
    for _ in range(4):
        claim = store.create(QUICK, "me")
        jobs.append(claim.request.id)
        claim.release()
    hosts = [JobHost(settings) for _ in range(2)]
    for host in hosts:
        await host.start()
    for job_id in jobs:
        # The one that does not hold it watches the folder.
        views = [await host.wait(job_id, BOUND_S) for host in hosts]
        assert [(view.state, view.attempts) for view in views] == [("done", 1)] * 2
    for host in hosts:
        await host.close()


async def test_an_orphan_is_taken_up_by_whoever_waits_for_it(settings: Settings) -> None:
    closing = JobHost(settings)
    job_id = await closing.submit(SPINNING, "me")
    await closing.close()
    host = JobHost(settings)
    await wait_until_told(host, job_id, ON_SIM)
    assert (await host.cancel(job_id)).state == "cancelled"
    await host.close()


async def test_an_orphan_is_cancelled_without_being_run(settings: Settings) -> None:
    closing = JobHost(settings)
    job_id = await closing.submit(SPINNING, "me")
    await closing.close()
    host = JobHost(settings)
    assert (await host.cancel(job_id)).state == "cancelled"
    assert host.runner_pids == []
    await host.close()


async def test_a_killed_server_leaves_no_process_and_its_job_is_resumed(settings: Settings) -> None:
    with JobServer(settings.home, SPINNING) as server:
        server.read_until(ON_SIM)
        members = await _grown_tree(server)
        server.kill()
    with anyio.fail_after(2.0):
        while living(members):
            await anyio.sleep(0.01)
    host = JobHost(settings)
    before = await host.view(server.job_id)
    assert (before.state, before.holder, before.attempts) == ("queued", None, 1)
    await host.start()
    await wait_until_told(host, server.job_id, "beginning again")
    await wait_until_told(host, server.job_id, ON_SIM)
    after = await host.view(server.job_id)
    assert (after.state, after.attempts) == ("running", 2)
    assert before.progress is not None and after.progress is not None
    assert after.progress.done > before.progress.done
    await host.cancel(server.job_id)
    await host.close()


async def test_a_server_killed_during_a_compile_leaves_no_compiler(settings: Settings) -> None:
    with JobServer(settings.home, BOMB) as server:
        server.read_until(IN_COMPILER)
        members = await _grown_tree(server)
        server.kill()
    with anyio.fail_after(2.0):
        while living(members):
            await anyio.sleep(0.01)


async def test_a_result_outlives_the_server_that_was_killed(settings: Settings) -> None:
    with JobServer(settings.home, QUICK) as server:
        server.read_until("done")
        server.kill()
    host = JobHost(settings)
    view = await host.view(server.job_id)
    assert (view.state, view.attempts) == ("done", 1)
    assert view.result is not None and view.result["status"] == "passed"
    await host.close()


async def test_a_job_under_which_every_server_ends_is_given_up(settings: Settings) -> None:
    claim = JobStore(settings.jobs_folder).create(QUICK, "me")
    for _ in range(6):
        claim.files.begin_attempt()
    claim.release()
    host = JobHost(settings)
    view = await host.wait(claim.request.id, BOUND_S)
    assert view.error is not None, view.state
    assert (view.error.kind, view.state) == ("machine", "failed")
    assert "begun 6 times" in view.error.message
    await host.close()


async def test_a_step_that_was_interrupted_is_finished_not_repeated(settings: Settings) -> None:
    slower = REFERENCE.replace("vectorization", "memory")
    candidate = SubmittedCandidate(source=slower + "\n// again\n")
    step = StepWork(kernel=KERNEL, candidates=(candidate,), device="sim")
    with JobServer(settings.home, step) as server:
        server.read_until("round 1")
        server.kill()
    host = JobHost(settings)
    await host.start()
    view = await host.wait(server.job_id, 3 * BOUND_S)
    assert view.state == "done", view.error
    assert view.result is not None
    assert (view.result["schema"], view.result["round"]) == ("kopt.step/1", 1)
    assert [one["status"] for one in view.result["candidates"]] == ["passed"]
    (run,) = settings.runs.glob("run-*")
    assert [may_see(owner, run) for owner in ("token:1", "token:2")] == [True, False]
    await host.close()


async def test_nothing_is_probed_or_started_before_there_is_work(settings: Settings) -> None:
    host = JobHost(settings)
    await host.start()
    assert host.runner_pids == []
    assert not settings.jobs_folder.exists()
    await host.close()
