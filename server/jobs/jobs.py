"""Jobs as the tools see them: submitted, waited for, cancelled.

The real ones are `job_host.py`'s, in processes of their own; a read-only server has those of
`watched_jobs.py`, tests without processes have scripted ones.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

from kopt.server.work.requests import Work

from .records import JobView, Progress

Watch = Callable[[Progress], Awaitable[None]]


class Jobs(Protocol):
    """Durable jobs; none of them hangs on the call that began it."""

    async def submit(self, work: Work, caller: str) -> str:
        """Return the id of a new job, which is on disk by then."""
        ...

    async def wait(self, job_id: str, wait_s: float, watch: Watch | None = None) -> JobView:
        """Return the job once it is over, or as it stands after `wait_s` seconds.

        `watch` hears of progress every few seconds, `done` rising each time.
        """
        ...

    async def view(self, job_id: str) -> JobView:
        """Return the job as it stands."""
        ...

    async def cancel(self, job_id: str) -> JobView:
        """End the job's work and return what became of it."""
        ...
