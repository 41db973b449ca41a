"""Equal calls to one server: they share a job, and wait for no other."""

import asyncio
import threading
from typing import Any

import pytest

from kopt.server.jobs.held_job import HeldJob
from kopt.server.jobs.job_host import JobHost
from kopt.server.jobs.job_store import JobClaim, JobStore
from kopt.server.jobs.lane import Lane
from support.job_works import ON_SIM, QUICK, SPINNING, wait_until_told

pytestmark = pytest.mark.anyio

BOUND_S = 60.0


async def test_a_job_that_is_being_cancelled_is_not_joined(
    host: JobHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_end = asyncio.Event()
    cancel = Lane.cancel

    async def late(one: Lane, job: HeldJob) -> None:
        await may_end.wait()
        await cancel(one, job)

    monkeypatch.setattr(Lane, "cancel", late)
    job_id = await host.submit(SPINNING, "me")
    await wait_until_told(host, job_id, ON_SIM)
    assert await host.submit(SPINNING, "me", joins=True) == job_id
    ending = asyncio.create_task(host.cancel(job_id))
    async with asyncio.timeout(BOUND_S):
        while (another := await host.submit(SPINNING, "me", joins=True)) == job_id:
            await asyncio.sleep(0)
    assert not (await host.view(job_id)).is_over
    may_end.set()
    assert (await ending).state == "cancelled"
    await host.cancel(another)


async def test_different_calls_do_not_wait_for_one_another_to_be_written(
    host: JobHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = threading.Barrier(2, timeout=BOUND_S)
    create = JobStore.create

    def together(*call: Any) -> JobClaim:
        both.wait()  # broken where one is written after the other
        return create(*call)

    monkeypatch.setattr(JobStore, "create", together)
    async with asyncio.TaskGroup() as group:
        for work in (QUICK, SPINNING):
            group.create_task(host.submit(work, "me", joins=True))


async def test_equal_calls_in_one_moment_make_one_job_of_each_owner(host: JobHost) -> None:
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(host.submit(QUICK, "me", joins=True)) for _ in range(4)]
        others = group.create_task(host.submit(QUICK, "me", "token:1", joins=True))
    (job_id,) = {call.result() for call in calls}
    assert others.result() != job_id
