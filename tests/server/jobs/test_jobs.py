"""Jobs of a read-only server: waited for, and never submitted or cancelled."""

import asyncio

import pytest

from kopt.config.errors import ToolError
from kopt.server.jobs.jobs import WatchedJobs
from kopt.server.jobs.records import Progress
from support.job_works import QUICK
from support.scripted_jobs import ScriptedJobs

pytestmark = pytest.mark.anyio


async def test_nothing_is_submitted() -> None:
    others = ScriptedJobs()
    with pytest.raises(ToolError, match="--read-only"):
        await WatchedJobs(others).submit(QUICK, "test")
    assert others.works == []


async def test_another_servers_job_is_not_cancelled() -> None:
    others = ScriptedJobs()
    job_id = await others.submit(QUICK, "another server")
    with pytest.raises(ToolError, match="stays as it is"):
        await WatchedJobs(others).cancel(job_id)
    assert others.cancelled == set()


async def test_the_wait_ends_with_the_job() -> None:
    others = ScriptedJobs()
    others.go.clear()
    job_id = await others.submit(QUICK, "another server")

    async def end_it(_progress: Progress) -> None:
        others.go.set()

    async with asyncio.timeout(5):
        view = await WatchedJobs(others).wait(job_id, 60.0, end_it)
    assert view.state == "done"


async def test_a_wait_that_is_too_short_returns_the_job_as_it_stands() -> None:
    others = ScriptedJobs()
    others.go.clear()
    job_id = await others.submit(QUICK, "another server")
    async with asyncio.timeout(5):
        view = await WatchedJobs(others).wait(job_id, 0.01)
    assert view.state == "running"
