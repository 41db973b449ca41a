"""The jobs of one caller: another caller's job gets the answer of one that does not exist."""

from kopt.config.errors import KoptError
from kopt.config.folder_owner import LOCAL_OWNER
from kopt.server.work.requests import Work

from .job_store import unknown_job
from .jobs import Jobs, Watch
from .records import JobView


class OwnedJobs:
    """What one caller sees of all jobs of a server; the local owner sees each."""

    def __init__(self, jobs: Jobs, owner: str) -> None:
        """Show those of `jobs` that `owner` began."""
        self._jobs = jobs
        self._owner = owner

    async def submit(self, work: Work, caller: str) -> str:
        """Queue `work` as a job of this owner and return its id, or that of the job that it joins.

        The very same work of this owner is joined where it is under way, or where its result would
        be the same (`same_work.py`).
        """
        return await self._jobs.submit(work, caller, self._owner, joins=True)

    async def wait(self, job_id: str, wait_s: float, watch: Watch | None = None) -> JobView:
        """Return the job when it is over, or as it stands after `wait_s`."""
        await self.view(job_id)
        return await self._jobs.wait(job_id, wait_s, watch)

    async def cancel(self, job_id: str) -> JobView:
        """End the job's work and return what became of it."""
        await self.view(job_id)
        return await self._jobs.cancel(job_id)

    async def recent(self, most: int) -> list[JobView]:
        """Return the newest jobs of this owner, newest first."""
        return await self._jobs.recent(self._owner, most)

    async def view(self, job_id: str) -> JobView:
        """Return the job as it stands.

        Raises:
            ToolError: There is no such job, or this caller may not know of it.
        """
        try:
            view = await self._jobs.view(job_id)
        except KoptError as error:
            if self._owner == LOCAL_OWNER:
                raise
            raise unknown_job(job_id) from error  # damaged: nothing says whose it is
        if self._owner not in (LOCAL_OWNER, view.request.owner):
            raise unknown_job(job_id)
        return view
