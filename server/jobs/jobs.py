"""Jobs as the tools see them: submitted, waited for with progress told, cancelled.

`job_host.py` has the real ones, in processes of their own; a read-only server has `WatchedJobs`;
tests without processes have scripted ones.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Protocol

from kopt.config.errors import KoptError, ToolError
from kopt.server.work.requests import Work

from .records import JobView, Progress

_BEAT_S = 2.0
"""Progress is told this often, also when nothing new is known."""
_SLOWNESS_S = 30.0
"""Time within one step after which half of the step is told."""
_LEAST_STEP = 1e-3

Watch = Callable[[Progress], Awaitable[None]]
Look = Callable[[], Awaitable[JobView]]
Pause = Callable[[JobView, float], Awaitable[None]]
"""Returns when another look is due, at most so many seconds later."""


class ProgressBeat:
    """The stream of progress of one `wait`.

    Clients take progress for a sign of life, and the protocol wants it to rise. Between two steps
    of the work, `done` creeps towards the next whole step without reaching it.
    """

    def __init__(self, every_s: float) -> None:
        """Tell at least so often."""
        self._every_s = every_s
        self._known: Progress | None = None
        self._known_at = 0.0
        self._told_at = 0.0
        self._told_done = -1.0

    def next(self, view: JobView, now_s: float) -> Progress | None:
        """Return what to tell now; None if that was told a moment ago."""
        known = view.progress or Progress(done=0.0, message=view.state)
        is_new = known != self._known
        if is_new:
            self._known, self._known_at = known, now_s
        if not is_new and now_s - self._told_at < self._every_s:
            return None
        waited_s = now_s - self._known_at
        done = known.done + waited_s / (waited_s + _SLOWNESS_S)
        if is_new:  # news without an advance, such as that work begins again, is told too
            done = max(done, self._told_done + _LEAST_STEP)
        if known.total is not None:
            done = min(done, known.total)
        if done <= self._told_done:
            return None
        self._told_at, self._told_done = now_s, done
        seconds = f" ({waited_s:.0f} s)" if waited_s >= 1.0 else ""
        return known.model_copy(update={"done": done, "message": known.message + seconds})


async def wait_until_over(look: Look, wait_s: float, watch: Watch | None, pause: Pause) -> JobView:
    """Return the job when it is over, or as it stands after `wait_s`.

    Args:
        look: Returns the job as it stands.
        wait_s: Longest wait; without any, the job is looked at once.
        watch: Told how far it is, every few seconds at least; `done` rises each time.
        pause: Given the job as last seen and the longest pause, in seconds.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    beat = ProgressBeat(_BEAT_S)
    while True:
        view = await look()
        if watch is not None and (told := beat.next(view, loop.time())) is not None:
            await watch(told)
        left = deadline - loop.time()
        if view.is_over or left <= 0:
            return view
        await pause(view, min(_BEAT_S, left))


async def readable(ids: Iterable[str], view: Callable[[str], Awaitable[JobView]]) -> list[JobView]:
    """Return the jobs of `ids`, without those that were swept or damaged meanwhile."""
    found: list[JobView] = []
    for job_id in ids:
        with suppress(KoptError):
            found.append(await view(job_id))
    return found


_POLL_S = 0.2


class Jobs(Protocol):
    """Durable jobs; none of them depends on the call that began it."""

    async def submit(self, work: Work, caller: str, owner: str = "", joins: bool = False) -> str:
        """Return the id of a job of `owner`, which is on disk by then.

        It is a new one, unless the call `joins` the owner's job of the very same work.
        """
        ...

    async def wait(self, job_id: str, wait_s: float, watch: Watch | None = None) -> JobView:
        """Return the job once it is over, or as it stands after `wait_s` seconds.

        `watch` is told of progress every few seconds, `done` rising each time.
        """
        ...

    async def view(self, job_id: str) -> JobView:
        """Return the job as it stands."""
        ...

    async def cancel(self, job_id: str) -> JobView:
        """End the job's work and return what became of it."""
        ...

    async def recent(self, owner: str, most: int) -> list[JobView]:
        """Return the newest jobs that `owner` may see, newest first."""
        ...


class WatchedJobs:
    """The jobs of a read-only server: those of other servers, looked at and left alone.

    An ordinary server takes up what another left behind. Here nothing may run, so a job that no
    server works on stays as it is, and waiting for it is all that can be done.
    """

    def __init__(self, host: Jobs) -> None:
        """Look through `host`, which is never started."""
        self._host = host

    async def start(self) -> None:
        """Take up nothing."""

    def kill_all(self) -> None:
        """Do nothing: there is no process."""

    async def submit(self, work: Work, caller: str, owner: str = "", joins: bool = False) -> str:
        """Refuse.

        Raises:
            ToolError: Always.
        """
        del work, caller, owner, joins
        raise ToolError("this server was started with --read-only: it compiles and runs nothing")

    async def wait(self, job_id: str, wait_s: float, watch: Watch | None = None) -> JobView:
        """Return the job once another server has ended it, or as it stands after `wait_s`."""
        return await wait_until_over(partial(self.view, job_id), wait_s, watch, _pause)

    async def view(self, job_id: str) -> JobView:
        """Return the job as it stands."""
        return await self._host.view(job_id)

    async def recent(self, owner: str, most: int) -> list[JobView]:
        """Return the newest jobs that `owner` may see, newest first."""
        return await self._host.recent(owner, most)

    async def cancel(self, job_id: str) -> JobView:
        """Refuse.

        Raises:
            ToolError: Always.
        """
        raise ToolError(f"{job_id} stays as it is: this server was started with --read-only")


async def _pause(_view: JobView, limit_s: float) -> None:
    await asyncio.sleep(min(_POLL_S, limit_s))
