"""Long work for tool calls: durable before `submit` returns, done by runner processes, resumed.

A job belongs to no request: a caller that waits may leave, and another server of the same KOPT_HOME
may ask for it. What runs is `lane.py`'s, what lies on the disk `job_store.py`'s.
"""

import asyncio
import logging
from contextlib import suppress
from functools import partial
from typing import Any

from kopt.config.errors import KoptError
from kopt.config.settings import Settings
from kopt.server.work.requests import Work

from .held_job import MAX_JOBS, HeldJob, Waiting, refuse_if_full, waiting_work
from .job_store import JobClaim, JobStore
from .jobs import Watch, readable, wait_until_over
from .lane import Lane
from .records import CPU, JobView
from .same_work import SameWork
from .server_needs import ServerOffer, needs_of

logger = logging.getLogger(__name__)

ADOPT_AFTER_S = 3.0
"""Orphans are taken up so late, or with the first call for a job: clients start servers too only to
ask what they offer."""
ADOPTED_WAITING = 16
"""Orphans are taken up as long as fewer jobs than this wait: the rest is free for other servers."""
_ADOPT_POLL_S = 1.0
_FOREIGN_POLL_S = 0.1
"""Pause between looks at the job of another server, and at cancel requests for our own."""
_CANCEL_S = 10.0
"""Longest wait for the end of a job that is being cancelled."""
_WRITE_AGAIN_S = 5.0
"""Pause between attempts to write the end of a job that a full disk did not take."""


class JobHost:
    """All jobs of one server process; for one event loop."""

    def __init__(self, settings: Settings, devices: tuple[str, ...] = ()) -> None:
        """Start and read nothing.

        Args:
            settings: The settings of all jobs.
            devices: The GPUs (`cuda:N`) whose jobs may be taken up; empty: all.
        """
        self._settings = settings
        self._offer = ServerOffer(settings.problems, devices)
        self._store = JobStore(settings.jobs_folder)
        self._held: dict[str, HeldJob] = {}
        self._lanes: dict[str, Lane] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._requests: asyncio.Task[None] | None = None
        self._arriving: list[Waiting] = []
        self._asked = asyncio.Event()
        self._is_closing = False
        self._same = SameWork()

    @property
    def runner_pids(self) -> list[int]:
        """The process groups of all living runners."""
        return [pid for lane in self._lanes.values() for pid in lane.runner_pids]

    async def start(self) -> None:
        """Sweep old jobs and resume the last day's orphans, in the background."""
        self._spawn(self._resume())

    async def submit(self, work: Work, caller: str, owner: str = "", joins: bool = False) -> str:
        """Queue `work` and return the id of its job, which is on the disk by then.

        Args:
            work: The work to do.
            caller: The caller's name, for its turns.
            owner: Whose job it is; "": the local owner's.
            joins: Return the owner's job of the very same work if there is one (`same_work.py`).

        Raises:
            ToolError: The work holds text that is not Unicode, or too much waits already.
            SetupError: KOPT_HOME is full or cannot be written.
        """
        self._asked.set()
        # Shielded: a caller that leaves in this moment must not leave a job that no process runs.
        submitted = (self._join if joins else self._submit)(work, caller, owner)
        return await asyncio.shield(self._spawn(submitted))

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
        self._asked.set()
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
        self._asked.set()
        view = self._store.view(job_id)
        job = self._held.get(job_id)
        if job is not None:
            return job.overlay(view, self._lanes[job.lane].before(job))
        if view.is_over or view.holder is not None:
            return view
        return view.model_copy(update={"needed_server": self._offer.lacking_for(view.request)})

    def kill_all(self) -> None:
        """Kill every runner at once, without waiting: for signal handlers, just before the end."""
        self._is_closing = True
        for lane in self._lanes.values():
            lane.kill_all()

    async def close(self) -> None:
        """End all runners and let go of all jobs; those that are not over are then orphans.

        For tests and for processes that go on after it. The server itself ends by
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

    async def recent(self, owner: str, most: int) -> list[JobView]:
        """Return the newest jobs that `owner` may see, newest first; damaged ones are left out."""
        ids = await asyncio.to_thread(self._store.newest, owner, most)
        return await readable(ids, self.view)

    async def _join(self, work: Work, caller: str, owner: str) -> str:
        async with self._same.turn(work, owner):
            job_id = await self._same.joined(work, owner, self.view)
            return job_id or await self._submit(work, caller, owner)

    async def _submit(self, work: Work, caller: str, owner: str) -> str:
        new = waiting_work(caller, work)
        refuse_if_full(self._waiting(), new)
        self._arriving.append(new)  # others are asked for while this one is written
        try:
            claim = await asyncio.to_thread(
                lambda: self._store.create(work, caller, needs_of(work, self._settings), owner)
            )
            self._enqueue(claim)
            self._same.note(claim.request)
        finally:
            self._arriving.remove(new)
        return claim.request.id

    def _waiting(self) -> list[Waiting]:
        """Return what waits here for a runner, or is about to."""
        held = self._held.values()
        return [
            *(job.waiting for job in held if not job.is_running and not job.is_over),
            *self._arriving,
        ]

    def _enqueue(self, claim: JobClaim) -> None:
        if self._is_closing:
            claim.release()
            return
        request = claim.request
        name = request.needs.device
        lane = self._lanes.get(name)
        if lane is None:
            runners = max(1, self._settings.jobs) if name == CPU else 1
            lane = self._lanes[name] = Lane(runners, self._settings, self._on_over)
        job = HeldJob(claim, name, waiting_work(request.caller, request.work))
        self._held[job.id] = job
        lane.put(job)
        if self._requests is None or self._requests.done():
            self._requests = self._spawn(self._heed_requests())

    async def _pause(self, view: JobView, limit_s: float) -> None:
        """Return at the next change of a job that is held here, else soon; takes up an orphan."""
        job = self._held.get(view.request.id)
        if job is not None:
            await job.changed.wait(limit_s)
        elif view.holder or view.needed_server or not self._adopt(view.request.id):
            await asyncio.sleep(min(_FOREIGN_POLL_S, limit_s))

    def _adopt(self, job_id: str) -> bool:
        """Take up an orphan that this server can do; False if another one has it, or has to."""
        if len(self._waiting()) >= MAX_JOBS:
            return False
        claim = self._store.claim(job_id)
        if claim is None:
            return False
        if self._offer.lacking_for(claim.request) is not None:
            claim.release()
            return False
        claim.tell(running=False)
        self._enqueue(claim)
        return True

    async def _resume(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(ADOPT_AFTER_S):
                await self._asked.wait()
        try:
            await asyncio.to_thread(self._store.sweep)
            orphans = await asyncio.to_thread(self._store.orphans)
        except OSError as error:
            logger.warning("jobs that were left cannot be resumed: %s", error)
            return
        for job_id in orphans:
            while len(self._waiting()) >= ADOPTED_WAITING:
                await asyncio.sleep(_ADOPT_POLL_S)
            try:
                self._adopt(job_id)
            except (KoptError, OSError) as error:
                logger.warning("%s cannot be resumed: %s", job_id, error)
            await asyncio.sleep(0)  # calls go first

    async def _cancel_held(self, job: HeldJob) -> None:
        self._same.forget(job.id)
        await self._lanes[job.lane].cancel(job)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _CANCEL_S
        while not job.is_over and loop.time() < deadline:
            await job.changed.wait(deadline - loop.time())

    async def _heed_requests(self) -> None:
        """Cancel what other servers of this KOPT_HOME ask for, as long as anything is held."""
        written_at = 0.0
        while self._held:
            for job in list(self._held.values()):
                if (
                    not job.is_over
                    and not job.is_cancelling
                    and job.claim.files.cancel_request.exists()
                ):
                    await self._cancel_held(job)
            now = asyncio.get_running_loop().time()
            if now > written_at + _WRITE_AGAIN_S:
                written_at = now
                await self._write_again()
            await asyncio.sleep(_FOREIGN_POLL_S)

    async def _write_again(self) -> None:
        """Keep the ends of jobs that a full disk did not take, and let go of the jobs."""
        for job in list(self._held.values()):
            if job.unwritten is None:
                continue
            try:
                await asyncio.to_thread(job.claim.files.write_error, job.unwritten)
            except OSError:  # still full
                return
            job.unwritten = None
            self._on_over(job)

    def _on_over(self, job: HeldJob) -> None:
        """Let go of a job whose end is on the disk; keep another, which may be asked for."""
        if job.unwritten is None:
            self._held.pop(job.id, None)
            job.claim.release()

    def _spawn(self, work: Any) -> "asyncio.Task[Any]":
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task
