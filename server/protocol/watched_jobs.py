"""The jobs of a read-only server: those of other servers, looked at and left alone.

An ordinary server takes up what another left behind. Here nothing may run, so a job that no server
works on stays as it is, and waiting for it is all that can be done.
"""

import asyncio

from kopt.config.errors import ToolError
from kopt.server.jobs.progress_beat import ProgressBeat
from kopt.server.jobs.records import JobView
from kopt.server.work.requests import Work

from .jobs import Jobs, Watch

_BEAT_S = 2.0
_POLL_S = 0.2


class WatchedJobs:
    """Looks at the jobs of a host that is never started."""

    def __init__(self, host: Jobs) -> None:
        """Take the host to look through."""
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
        loop = asyncio.get_running_loop()
        deadline = loop.time() + wait_s
        beat = ProgressBeat(_BEAT_S)
        while True:
            view = await self.view(job_id)
            if watch is not None and (told := beat.next(view, loop.time())) is not None:
                await watch(told)
            left = deadline - loop.time()
            if view.is_over or left <= 0:
                return view
            await asyncio.sleep(min(_POLL_S, left))

    async def view(self, job_id: str) -> JobView:
        """Return the job as it stands."""
        return await self._host.view(job_id)

    async def cancel(self, job_id: str) -> JobView:
        """Refuse.

        Raises:
            ToolError: Always.
        """
        raise ToolError(f"{job_id} stays as it is: this server was started with --read-only")
