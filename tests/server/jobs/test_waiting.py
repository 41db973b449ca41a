"""Waiting for a job, and the progress that is told meanwhile."""

import asyncio

import pytest

from kopt.server.jobs.jobs import ProgressBeat, wait_until_over
from kopt.server.jobs.records import JobRequest, JobView, Progress
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


def view(progress: Progress | None) -> JobView:
    return JobView(request=REQUEST, state="running", progress=progress)


def heard(beat: ProgressBeat, steps: list[tuple[float, Progress | None]]) -> list[float]:
    told = [beat.next(view(progress), now) for now, progress in steps]
    return [one.done for one in told if one is not None]


def test_a_silent_step_is_told_of_again_and_never_reaches_the_next() -> None:
    first = Progress(done=1.0, message="compiling")
    done = heard(ProgressBeat(2.0), [(float(second), first) for second in range(600)])
    assert len(done) == 300
    assert done == sorted(set(done))
    assert done[-1] < 2.0


def test_nothing_is_repeated_within_a_moment() -> None:
    first = Progress(done=1.0, message="compiling")
    assert heard(ProgressBeat(2.0), [(0.0, first), (0.1, first), (1.9, first)]) == [1.0]


def test_news_without_an_advance_are_told_as_a_small_one() -> None:
    steps = [
        (0.0, Progress(done=3.0)),
        (0.1, Progress(done=3.0, message="beginning again")),
        (0.2, Progress(done=4.0)),
    ]
    assert heard(ProgressBeat(2.0), list(steps)) == [3.0, 3.001, 4.0]


def test_a_step_is_never_more_than_the_total() -> None:
    last = Progress(done=4.0, total=4.0)
    assert heard(ProgressBeat(2.0), [(0.0, last), (10.0, last), (100.0, last)]) == [4.0]


def test_a_job_that_says_nothing_yet_is_told_of_by_its_state() -> None:
    told = ProgressBeat(2.0).next(view(None), 0.0)
    assert told is not None
    assert (told.done, told.message) == (0.0, "running")


def test_the_seconds_of_a_long_step_are_told() -> None:
    beat = ProgressBeat(2.0)
    first = Progress(done=1.0, message="compiling")
    beat.next(view(first), 0.0)
    told = beat.next(view(first), 7.0)
    assert told is not None
    assert told.message == "compiling (7 s)"
