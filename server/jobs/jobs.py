"""Jobs as the tools see them: submitted, waited for, cancelled.

`job_host.py` has the real ones, in processes of their own; a read-only server has `WatchedJobs`;
tests without processes have scripted ones.
"""

import asyncio
from functools import partial
from typing import Protocol

from kopt.config.errors import ToolError
from kopt.server.work.requests import Work

from .records import JobView
from .waiting import Watch, wait_until_over

_POLL_S = 0.2


class Jobs(Protocol):
    """Durable jobs; none of them depends on the call that began it."""

    async def submit(self, work: Work, caller: str) -> str:
        """Return the id of a new job, which is on disk by then."""
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

    async def submit(self, work: Work, caller: str) -> str:
        """Refuse.

        Raises:
            ToolError: Always.
        """
        del work, caller
        raise ToolError("this server was started with --read-only: it compiles and runs nothing")

    async def wait(self, job_id: str, wait_s: float, watch: Watch | None = None) -> JobView:
        """Return the job once another server has ended it, or as it stands after `wait_s`."""
        return await wait_until_over(partial(self.view, job_id), wait_s, watch, _pause)

    async def view(self, job_id: str) -> JobView:
        """Return the job as it stands."""
        return await self._host.view(job_id)

    async def cancel(self, job_id: str) -> JobView:
        """Refuse.

        Raises:
            ToolError: Always.
        """
        raise ToolError(f"{job_id} stays as it is: this server was started with --read-only")


async def _pause(_view: JobView, limit_s: float) -> None:
    await asyncio.sleep(min(_POLL_S, limit_s))
