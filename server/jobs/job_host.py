"""Long work for tool calls: durable before `submit` returns, done by runner processes, resumed.

A job belongs to no request: whoever waits may leave, and another server of the same KOPT_HOME may
ask for it. What runs is `lane.py`'s, what lies on the disk `job_store.py`'s.
"""

import asyncio
import logging
import re
from functools import partial
from typing import Any

from kopt.config.errors import KoptError
from kopt.config.settings import Settings
from kopt.server.work.requests import CompileWork, Work
from kopt.tools.sandbox.gpu_devices import gpu_devices

from .held_job import HeldJob
from .job_store import JobClaim, JobStore
from .jobs import Watch
from .lane import Lane
from .records import JobView
from .waiting import wait_until_over

logger = logging.getLogger(__name__)

CPU_LANE = "cpu"
"""For the simulator and the compiler, which share no device."""
_FOREIGN_POLL_S = 0.1
"""How often the folder of another server's job is looked at, and our own for a cancel request."""
_CANCEL_S = 10.0
"""Longest wait for the end of a job that is being cancelled."""


class JobHost:
    """All jobs of one server process; for one event loop."""

    def __init__(self, settings: Settings) -> None:
        """Start and read nothing."""
        self._settings = settings
        self._store = JobStore(settings.jobs_folder)
        self._held: dict[str, HeldJob] = {}
        self._lanes: dict[str, Lane] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._requests: asyncio.Task[None] | None = None
        self._is_closing = False

    @property
    def runner_pids(self) -> list[int]:
        """The process groups of all living runners."""
        return [pid for lane in self._lanes.values() for pid in lane.runner_pids]

    async def start(self) -> None:
        """Sweep old jobs and resume the last day's orphans, in the background."""
        self._spawn(self._resume())

    async def submit(self, work: Work, caller: str) -> str:
        """Queue `work` and return the id of its job, which is on the disk by then.

        Raises:
            ToolError: The work holds text that is not Unicode.
            SetupError: KOPT_HOME is full or cannot be written.
        """
        # Shielded: a caller that leaves in this moment must not leave a job that nobody runs.
        return await asyncio.shield(self._spawn(self._submit(work, caller)))

    async def wait(self, job_id: str, wait_s: float, watch: Watch | None = None) -> JobView:
        """Return the job when it is over, or as it stands after `wait_s`.

        Args:
            job_id: Also of another server process; an orphan is taken up.
            wait_s: Longest wait.
            watch: Told how far it is, every few seconds at least; `done` rises each time.

        Raises:
            ToolError: There is no such job.
        """
        return await wait_until_over(partial(self.view, job_id), wait_s, watch, self._pause)

    async def cancel(self, job_id: str) -> JobView:
        """End the job and return it; its device is free then. One that is over stays as it is.

        Raises:
            ToolError: There is no such job.
            SetupError: KOPT_HOME cannot be written.
        """
        job = self._held.get(job_id)
        if job is not None:
            await asyncio.shield(self._spawn(self._cancel_held(job)))
            return await self.view(job_id)
        view = await self.view(job_id)
        if view.is_over:
            return view
        await asyncio.to_thread(self._store.request_cancel, job_id)
        claim = self._store.claim(job_id)
        if claim is not None:  # an orphan
            try:
                await asyncio.to_thread(claim.files.write_cancelled)
            finally:
                claim.release()
        return await self.wait(job_id, _CANCEL_S)

    async def view(self, job_id: str) -> JobView:
        """Return the job as it stands.

        Raises:
            ToolError: There is no such job; the message says what to do.
        """
        view = self._store.view(job_id)
        job = self._held.get(job_id)
        return view if job is None else job.overlay(view, self._lanes[job.lane].before(job))

    def kill_all(self) -> None:
        """Kill every runner at once, without waiting: for signal handlers, just before the end."""
        self._is_closing = True
        for lane in self._lanes.values():
            lane.kill_all()

    async def close(self) -> None:
        """End all runners and let go of all jobs; those that are not over are then orphans.

        For tests and whoever embeds a host in a process that goes on. The server itself ends by
        `kill_all`, which waits for nothing.
        """
        self._is_closing = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(lane.close() for lane in self._lanes.values()))
        for job in self._held.values():
            job.claim.release()
        self._held.clear()

    async def _submit(self, work: Work, caller: str) -> str:
        claim = await asyncio.to_thread(self._store.create, work, caller)
        self._enqueue(claim)
        return claim.request.id

    def _enqueue(self, claim: JobClaim) -> None:
        if self._is_closing:
            claim.release()
            return
        name = _lane_name(claim.request.work)
        lane = self._lanes.get(name)
        if lane is None:
            runners = max(1, self._settings.jobs) if name == CPU_LANE else 1
            lane = self._lanes[name] = Lane(runners, self._settings, self._on_over)
        job = HeldJob(claim, name)
        self._held[job.id] = job
        lane.put(job)
        if self._requests is None or self._requests.done():
            self._requests = self._spawn(self._heed_requests())

    async def _pause(self, view: JobView, limit_s: float) -> None:
        """Return at the next change of a job that is held here, else soon; takes up an orphan."""
        job = self._held.get(view.request.id)
        if job is not None:
            await job.changed.wait(limit_s)
        elif view.holder is not None or not await self._adopt(view.request.id):
            await asyncio.sleep(min(_FOREIGN_POLL_S, limit_s))

    async def _adopt(self, job_id: str) -> bool:
        """Take up an orphan; False if it is none, or another server was quicker."""
        claim = self._store.claim(job_id)
        if claim is None:
            return False
        claim.tell(running=False)
        self._enqueue(claim)
        return True

    async def _resume(self) -> None:
        try:
            await asyncio.to_thread(self._store.sweep)
            orphans = await asyncio.to_thread(self._store.orphans)
        except OSError as error:
            logger.warning("jobs that were left cannot be resumed: %s", error)
            return
        for job_id in orphans:
            try:
                await self._adopt(job_id)
            except (KoptError, OSError) as error:
                logger.warning("%s cannot be resumed: %s", job_id, error)

    async def _cancel_held(self, job: HeldJob) -> None:
        await self._lanes[job.lane].cancel(job)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _CANCEL_S
        while not job.is_over and loop.time() < deadline:
            await job.changed.wait(deadline - loop.time())

    async def _heed_requests(self) -> None:
        """Cancel what other servers of this KOPT_HOME ask for, as long as anything is held."""
        while self._held:
            for job in list(self._held.values()):
                if not job.is_over and not job.is_cancelling and job.claim.files.wants_cancel:
                    await self._cancel_held(job)
            await asyncio.sleep(_FOREIGN_POLL_S)

    def _on_over(self, job: HeldJob) -> None:
        """Let go of a job whose end is on the disk; another is kept, for those who ask."""
        if job.unwritten is None:
            self._held.pop(job.id, None)
            job.claim.release()

    def _spawn(self, work: Any) -> "asyncio.Task[Any]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _lane_name(work: Work) -> str:
    """Return which queue `work` waits in; a device that cannot be is refused by the runner."""
    if isinstance(work, CompileWork):
        return CPU_LANE
    if work.device == "auto":
        return "cuda:0" if gpu_devices() else CPU_LANE
    match = re.fullmatch(r"cuda(?::(\d{1,2}))?", work.device)
    return CPU_LANE if match is None else f"cuda:{int(match[1] or 0)}"
