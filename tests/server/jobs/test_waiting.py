"""Waiting for a job, with pauses that the caller chooses."""

import asyncio

import pytest

from kopt.server.jobs.records import JobRequest, JobView
from kopt.server.jobs.waiting import wait_until_over
from support.job_works import QUICK

pytestmark = pytest.mark.anyio

REQUEST = JobRequest(id="job-1", work=QUICK, caller="test", created_us=0)
RUNNING = JobView(request=REQUEST, state="running")
CANCELLED = JobView(request=REQUEST, state="cancelled")


class Rig:
    """A job that is over after so many pauses."""

    def __init__(self, pauses: int) -> None:
        """Begin with the job running."""
        self.pauses = pauses
        self.limits: list[float] = []

    async def look(self) -> JobView:
        """Return the job as it stands."""
        return CANCELLED if len(self.limits) >= self.pauses else RUNNING

    async def pause(self, view: JobView, limit_s: float) -> None:
        """Take no time."""
        assert view is RUNNING
        self.limits.append(limit_s)


async def test_the_job_is_returned_once_it_is_over() -> None:
    rig = Rig(pauses=3)
    async with asyncio.timeout(5):
        assert await wait_until_over(rig.look, 60.0, None, rig.pause) is CANCELLED
    assert len(rig.limits) == 3


async def test_no_pause_is_longer_than_what_is_left_or_a_beat() -> None:
    short, long = Rig(pauses=1), Rig(pauses=1)
    await wait_until_over(short.look, 1.0, None, short.pause)
    await wait_until_over(long.look, 60.0, None, long.pause)
    assert 0.0 < short.limits[0] <= 1.0
    assert 1.0 < long.limits[0] <= 2.0


async def test_a_wait_of_nothing_looks_once() -> None:
    rig = Rig(pauses=1)
    assert await wait_until_over(rig.look, 0.0, None, rig.pause) is RUNNING
    assert rig.limits == []
