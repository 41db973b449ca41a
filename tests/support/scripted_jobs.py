"""Jobs without processes: what is submitted is kept, and ends as the test says."""

import asyncio
from collections.abc import Awaitable, Callable

from kopt.config.errors import ToolError
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.server.jobs.records import JobRequest, JobView, Progress
from kopt.server.work.requests import CompileWork, Work


class ScriptedJobs:
    """The twin of `JobHost`: every job has failed to compile, once `go` is set."""

    def __init__(self) -> None:
        """Let jobs end at once; clear `go` to hold them."""
        self.reset()

    def reset(self) -> None:
        """Forget all jobs and calls."""
        self.go = asyncio.Event()
        self.go.set()
        self.works: list[Work] = []
        self.callers: list[str] = []
        self.owners: list[str] = []
        self.cancelled: set[str] = set()
        self.progress: tuple[Progress, ...] = ()
        """What a waiting caller is told."""
        self.waiting = 0
        """Calls of `wait` that have not returned."""

    async def submit(self, work: Work, caller: str, owner: str = "", joins: bool = False) -> str:
        """Keep `work` under the next id; nothing is joined."""
        del joins
        self.works.append(work)
        self.owners.append(owner)
        self.callers.append(caller)
        return _job_id(len(self.works) - 1)

    async def wait(
        self,
        job_id: str,
        wait_s: float,
        watch: Callable[[Progress], Awaitable[None]] | None = None,
    ) -> JobView:
        """Tell all progress, then wait for `go`."""
        self.waiting += 1
        try:
            if watch is not None:
                for progress in self.progress:
                    await watch(progress)
            async with asyncio.timeout(0 if job_id in self.cancelled else wait_s):
                await self.go.wait()
        except TimeoutError:
            pass
        finally:
            self.waiting -= 1
        return await self.view(job_id)

    async def view(self, job_id: str) -> JobView:
        """Return the job: cancelled, done once `go` is set, else running."""
        number = self._number(job_id)
        work, owner = self.works[number], self.owners[number]
        request = JobRequest(id=job_id, work=work, caller="", owner=owner, created_us=0)
        if job_id in self.cancelled:
            return JobView(request=request, state="cancelled")
        if not self.go.is_set():
            return JobView(request=request, state="running", holder="this server")
        return JobView(request=request, state="done", result=_result(work))

    async def cancel(self, job_id: str) -> JobView:
        """Mark the job as cancelled."""
        self._number(job_id)
        self.cancelled.add(job_id)
        return await self.view(job_id)

    async def recent(self, owner: str, most: int) -> list[JobView]:
        """Return the newest jobs of `owner`, all for the local one, newest first."""
        numbers = [n for n, one in enumerate(self.owners) if owner in ("", one)]
        return [await self.view(_job_id(number)) for number in reversed(numbers[-most:])]

    def _number(self, job_id: str) -> int:
        ids = [_job_id(number) for number in range(len(self.works))]
        if job_id not in ids:
            raise ToolError(f"there is no job {job_id[:80]!r}")
        return ids.index(job_id)


def _job_id(number: int) -> str:
    return f"job-20260101-000000-{number:08x}"


def _result(work: Work) -> dict[str, object]:
    source = work.source if isinstance(work, CompileWork) else work.kind
    result = CompileResult(
        status=Status.COMPILE_ERROR,
        kernel=work.kernel or "none",
        candidate="0" * 64,
        diagnostics=(Diagnostic(message=f"cannot compile {source[:80]!r}", line=1),),
    )
    return result.model_dump(mode="json", by_alias=True)
