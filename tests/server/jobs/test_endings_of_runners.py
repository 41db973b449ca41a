"""Runners that lose their guard, attempts that their server ends, ends that a full disk refuses."""

import os
import resource
import signal

import anyio
import pytest

from kopt.config.settings import Settings
from kopt.server.jobs.job_host import JobHost
from kopt.server.jobs.job_store import JobStore
from kopt.server.jobs.process_tree import living
from support.job_works import ON_SIM, QUICK, SPINNING, trees, wait_until_told

pytestmark = [pytest.mark.anyio, pytest.mark.slow]  # whole server processes

BOUND_S = 60.0
GONE_S = 5.0


async def test_a_runner_without_its_guard_ends_and_its_job_begins_again(host: JobHost) -> None:
    job_id = await host.submit(SPINNING, "me")
    await wait_until_told(host, job_id, ON_SIM)
    members = trees(host.runner_pids)
    (guard,) = host.runner_pids
    os.kill(guard, signal.SIGKILL)
    await wait_until_told(host, job_id, "beginning again", GONE_S)
    assert living(members) == frozenset()
    assert len(host.runner_pids) == 1
    await wait_until_told(host, job_id, ON_SIM)
    members = trees(host.runner_pids)
    assert (await host.cancel(job_id)).state == "cancelled"
    assert living(members) == frozenset()


async def test_an_idle_runner_without_its_guard_ends_before_the_next_job(
    settings: Settings,
) -> None:
    host = JobHost(Settings(home=settings.home, jobs=1))
    await host.wait(await host.submit(QUICK, "me"), BOUND_S)
    members = trees(host.runner_pids)
    os.kill(host.runner_pids[0], signal.SIGKILL)
    with anyio.fail_after(GONE_S):
        while living(members):
            await anyio.sleep(0.01)
    assert (await host.wait(await host.submit(QUICK, "me"), BOUND_S)).state == "done"
    assert len(host.runner_pids) == 1
    await host.close()


async def test_an_attempt_that_its_server_ends_does_not_count(settings: Settings) -> None:
    first = JobHost(settings)
    job_id = await first.submit(SPINNING, "me")
    await wait_until_told(first, job_id, ON_SIM)
    await first.close()
    files = JobStore(settings.jobs_folder).files(job_id)
    assert (files.read_attempts(), files.read_counted_attempts()) == (1, 0)
    second = JobHost(settings)
    await wait_until_told(second, job_id, "beginning again")
    await wait_until_told(second, job_id, ON_SIM)
    second.kill_all()  # as at the end of stdin, and at a signal
    assert (files.read_attempts(), files.read_counted_attempts()) == (2, 0)
    await second.close()
    assert files.read_counted_attempts() == 0


async def test_an_attempt_whose_runner_dies_counts(host: JobHost, settings: Settings) -> None:
    job_id = await host.submit(SPINNING, "me")
    await wait_until_told(host, job_id, ON_SIM)
    os.kill(host.runner_pids[0], signal.SIGKILL)
    await wait_until_told(host, job_id, "beginning again", GONE_S)
    await host.close()
    assert JobStore(settings.jobs_folder).files(job_id).read_counted_attempts() == 1


async def test_an_end_that_the_disk_did_not_take_is_written_when_it_can_be(
    host: JobHost, settings: Settings
) -> None:
    await host.wait(await host.submit(QUICK, "me"), BOUND_S)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    for process in trees(host.runner_pids):
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (0, hard))
    job_id = await host.submit(QUICK, "me")
    store = JobStore(settings.jobs_folder)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        assert (await host.wait(job_id, BOUND_S)).state == "failed"
        assert not store.view(job_id).is_over
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with anyio.fail_after(BOUND_S):
        while store.view(job_id).state != "failed":
            await anyio.sleep(0.05)
    view = await host.view(job_id)
    assert view.error is not None and "File too large" in view.error.message
    assert not list(store.files(job_id).folder.glob(".new-*"))
