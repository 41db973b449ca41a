"""A job that this server process holds: its claim on the disk, and what changes while it runs."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field

from .job_queue import Waiting
from .job_store import JobClaim
from .records import JobError, JobView, Progress
from .runner_process import RunnerProcess


class Pulse:
    """An event that can happen again and again; for one event loop."""

    def __init__(self) -> None:
        """Begin without a change."""
        self._next = asyncio.Event()

    def beat(self) -> None:
        """Wake all who wait now."""
        self._next.set()
        self._next = asyncio.Event()

    async def wait(self, limit_s: float) -> None:
        """Return at the next change, or after `limit_s`."""
        waiting = self._next.wait()
        try:
            async with asyncio.timeout(limit_s):
                await waiting
        except TimeoutError:
            return


@dataclass(eq=False)
class HeldJob:
    """A job that is queued or runs here; dropped once its end is on the disk."""

    claim: JobClaim
    lane: str
    """The queue that it is in: `cuda:N`, or `cpu` for the simulator and the compiler."""
    waiting: Waiting
    """The job as the limits of the queue see it."""
    progress: Progress | None = None
    changed: Pulse = field(default_factory=Pulse)
    runner: RunnerProcess | None = None
    """The process that works on it, from shortly before to shortly after."""
    is_running: bool = False
    is_cancelling: bool = False
    is_over: bool = False
    unwritten: JobError | None = None
    """Why it failed, where the disk was too full to keep that."""
    attempt: int = 0
    """The number of the attempt at hand, from 1 on."""
    deaths: int = 0
    """Runners that ended under it."""

    @property
    def id(self) -> str:
        """The job's id."""
        return self.claim.request.id

    @property
    def caller(self) -> str:
        """The caller that asked for it."""
        return self.claim.request.caller

    def begin(self, attempt: int) -> None:
        """Note that work begins; what an earlier attempt said last is over."""
        before = self.progress or self.claim.files.read_progress()
        if attempt > 1 and before is not None:
            self.progress = before.model_copy(update={"message": "beginning again"})
        self.attempt = attempt
        self.is_running = True
        self.claim.tell(running=True)
        self.changed.beat()

    def excuse_attempt(self) -> None:
        """Let the attempt at hand not count, if it has begun and the job is not over."""
        files = self.claim.files
        with suppress(OSError):  # a full disk: it counts then
            if files.over_at_s is None and files.read_attempts() == self.attempt:
                files.excuse_attempt()

    def on_progress(self, progress: Progress) -> None:
        """Take progress that the runner reports."""
        self.progress = progress
        self.changed.beat()

    def overlay(self, view: JobView, before: int | None) -> JobView:
        """Return the view of the job on the disk, with what only this process knows.

        Args:
            view: From the disk.
            before: Jobs that wait before this one; None if it does not wait.
        """
        if view.is_over:
            return view
        progress = self.progress or view.progress
        if before is not None:
            place = f"behind {before} waiting" if before else "the next"
            done = 0.0 if progress is None else progress.done
            progress = Progress(done=done, message=f"queued for {self.lane}, {place}")
        known = view.model_copy(
            update={"state": "running" if self.is_running else "queued", "progress": progress}
        )
        if self.unwritten is not None:
            known = known.model_copy(
                update={"state": "failed", "error": self.unwritten, "holder": None}
            )
        return known
