"""One device's jobs: a fair queue, and up to so many runners that take from it.

Runners are started when there is work, used again, and ended when they have been idle for long. How
a job ended is written by the runner; what only the server can know (cancelled, died twice) here.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress

from kopt.config.settings import Settings
from kopt.server.exits import failure_of

from .held_job import FairQueue, HeldJob
from .records import JobError, OverEvent, job_error
from .runner_process import RunnerDied, RunnerProcess

logger = logging.getLogger(__name__)

IDLE_S = 300.0
"""A runner without work ends after so long, and frees its memory."""
MAX_DEATHS = 2
MAX_ATTEMPTS = 6
"""Most attempts over all servers: a job under which server after server is killed is not tried for
ever. Attempts that a server ended itself do not count."""
_GIVEN_UP = JobError(
    kind="machine",
    message=f"work was begun {MAX_ATTEMPTS} times, and its server or runner died each time",
    hint="Start the work again if the machine is well.",
)


class Lane:
    """The queue and the runners of one device; for one event loop."""

    def __init__(
        self, runners: int, settings: Settings, on_over: Callable[[HeldJob], None]
    ) -> None:
        """Start nothing yet.

        Args:
            runners: At most so many at the same time.
            settings: For the runners.
            on_over: Called when a job has ended, whichever way.
        """
        self._limit = runners
        self._settings = settings
        self._on_over = on_over
        self._queue: FairQueue[HeldJob] = FairQueue()
        self._work = asyncio.Semaphore(0)
        self._idle = 0
        self._slots: set[asyncio.Task[None]] = set()
        self._runners: set[RunnerProcess] = set()
        self._at_work: set[HeldJob] = set()
        self._is_closing = False

    @property
    def runner_pids(self) -> list[int]:
        """The process groups of the living runners."""
        return [runner.pid for runner in self._runners]

    def put(self, job: HeldJob) -> None:
        """Queue a job."""
        self._queue.put(job.caller, job)
        self._work.release()
        if len(self._queue) > self._idle and len(self._slots) < self._limit:
            self._slots.add(asyncio.create_task(self._serve(), name="job slot"))

    async def cancel(self, job: HeldJob) -> None:
        """End the job, at once if it has not begun, else with its runner."""
        job.is_cancelling = True
        if self._queue.remove(job.caller, job):
            await self._finish_cancelled(job)
        elif job.runner is not None:
            await job.runner.kill()

    def before(self, job: HeldJob) -> int | None:
        """Return how many jobs wait before this one; None if it does not wait."""
        return self._queue.before(job.caller, job)

    def kill_all(self) -> None:
        """Kill every runner, without waiting, and start none again."""
        self._is_closing = True
        for runner in self._runners:
            runner.kill_now()
        self._excuse_attempts()

    async def close(self) -> None:
        """End all runners; jobs that are not over stay so."""
        self._is_closing = True
        slots = list(self._slots)
        for slot in slots:
            slot.cancel()
        await asyncio.gather(*slots, return_exceptions=True)
        await asyncio.gather(*(self._end(runner) for runner in list(self._runners)))
        self._excuse_attempts()

    def _excuse_attempts(self) -> None:
        """Let what this server has ended not count: the work had no part in that."""
        for job in self._at_work:
            job.excuse_attempt()
        self._at_work.clear()

    async def _serve(self) -> None:
        """Do one job after the other, until there has been none for long."""
        runner: RunnerProcess | None = None
        while not self._is_closing:
            if await self._has_work():
                job = self._queue.take()
                if job is not None:
                    runner = await self._do_guarded(job, runner)
            elif runner is not None:
                await self._end(runner)
                runner = None
            else:  # nothing is awaited from here on: `put` counts this slot until it is gone
                break
        self._slots = {slot for slot in self._slots if slot is not asyncio.current_task()}

    async def _has_work(self) -> bool:
        self._idle += 1
        try:
            async with asyncio.timeout(IDLE_S):
                await self._work.acquire()
        except TimeoutError:
            return len(self._queue) > 0
        finally:
            self._idle -= 1
        return True

    async def _do_guarded(self, job: HeldJob, runner: RunnerProcess | None) -> RunnerProcess | None:
        """Do a job; an exception ends the job, not the lane."""
        try:
            return await self._do(job, runner)
        except Exception as error:  # the outermost frame of a job: the slot serves the next one
            failure = failure_of(error)
            if failure.kind == "bug":
                logger.exception("job %s ended unexpectedly", job.id)
            if job.runner is not None:
                await self._end(job.runner)
            await self._fail(job, job_error(failure))
            return None

    async def _do(self, job: HeldJob, runner: RunnerProcess | None) -> RunnerProcess | None:
        """Do a job to its end and return the runner, if it can be used again."""
        while not self._is_closing:
            runner = await self._living(runner)
            job.runner = runner
            if job.is_cancelling:
                await self._finish_cancelled(job)
                return runner
            if job.claim.files.read_counted_attempts() >= MAX_ATTEMPTS:
                await self._fail(job, _GIVEN_UP)
                return runner
            end = await self._attempt(job, runner)
            if not isinstance(end, RunnerDied):
                self._finish(job, end.error)
                return runner
            await self._end(runner)
            runner = None
            if job.claim.files.over_at_s is not None:  # it died between the result and its report
                self._finish(job)
                return None
            if job.is_cancelling:
                await self._finish_cancelled(job)
                return None
            job.deaths += 1
            if job.deaths >= MAX_DEATHS and not self._is_closing:
                await self._fail_dead(job, end)
                return None
        return runner

    async def _attempt(self, job: HeldJob, runner: RunnerProcess) -> OverEvent | RunnerDied:
        job.begin(job.claim.files.read_attempts() + 1)
        self._at_work.add(job)
        end = await runner.run(job.id, job.on_progress)
        if not self._is_closing:
            self._at_work.discard(job)
        return end

    async def _living(self, runner: RunnerProcess | None) -> RunnerProcess:
        """Return this runner, or a new one if it has ended."""
        if runner is not None and runner.is_alive:
            return runner
        if runner is not None:
            await self._end(runner)  # whole, before the next one asks for the device
        runner = await RunnerProcess.start(self._settings)
        self._runners.add(runner)
        if self._is_closing:
            runner.kill_now()
        return runner

    async def _end(self, runner: RunnerProcess) -> None:
        await runner.kill()
        self._runners.discard(runner)

    async def _finish_cancelled(self, job: HeldJob) -> None:
        files = job.claim.files
        if files.over_at_s is None:
            try:
                await asyncio.to_thread(files.write_cancelled)
            except OSError as error:
                found = job_error(failure_of(error))
                message = f"cancelled, which cannot be kept: {found.message}"
                self._finish(job, found.model_copy(update={"message": message}))
                return
        self._finish(job)

    async def _fail_dead(self, job: HeldJob, end: RunnerDied) -> None:
        log = job.claim.files.log
        with suppress(OSError):
            log.write_text(end.detail, encoding="utf-8")
        how = end.detail.splitlines()[0]
        error = JobError(
            kind="machine",
            message=f"{how}, {job.deaths} times under this work",
            hint=f"What it said last is in {log}. Is memory short? Lower KOPT_JOBS, or try again.",
        )
        await self._fail(job, error)

    async def _fail(self, job: HeldJob, error: JobError) -> None:
        with suppress(OSError):  # a full disk: this process remembers it
            await asyncio.to_thread(job.claim.files.write_error, error)
        self._finish(job, error)

    def _finish(self, job: HeldJob, error: JobError | None = None) -> None:
        """Note that the job is over, and wake all that wait for it."""
        self._at_work.discard(job)
        job.is_over = True
        job.is_running = False
        job.runner = None
        if job.claim.files.over_at_s is None:
            job.unwritten = error
        self._on_over(job)
        job.changed.beat()
