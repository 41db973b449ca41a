"""A job that this server process holds, and the queue that it waits in.

Callers take turns, and how much may wait is limited: a queued job holds an open file, its sources
hold memory.
"""

import asyncio
import resource
from collections import Counter, OrderedDict, deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kopt.config.errors import ToolError
from kopt.server.work.requests import Work, sources_of

from .job_store import JobClaim
from .records import JobError, JobView, Progress
from .runner_process import RunnerProcess

MAX_JOBS_OF_CALLER = 64
MAX_JOBS = 256
MAX_BYTES_OF_CALLER = 16 << 20
MAX_BYTES = 64 << 20
OPEN_FILES = 8192
"""Far more than all limits of the server together; shells allow 1024 at first, and many more on
request."""

Item = TypeVar("Item")


class FairQueue(Generic[Item]):
    """Round robin over callers, first in, first out within each; for one thread."""

    def __init__(self) -> None:
        """Begin empty."""
        self._turns: OrderedDict[str, deque[Item]] = OrderedDict()

    def __len__(self) -> int:
        """Return how many items wait."""
        return sum(len(items) for items in self._turns.values())

    def put(self, caller: str, item: Item) -> None:
        """Let `item` wait behind the earlier ones of `caller`."""
        self._turns.setdefault(caller, deque()).append(item)

    def take(self) -> Item | None:
        """Return the next item, None if there is none; its caller goes to the end of the line."""
        if not self._turns:
            return None
        caller, items = self._turns.popitem(last=False)
        item = items.popleft()
        if items:
            self._turns[caller] = items
        return item

    def before(self, caller: str, item: Item) -> int | None:
        """Return how many items will be taken before `item`; None if it does not wait."""
        own = self._turns.get(caller)
        if own is None or item not in own:
            return None
        round_number = own.index(item)
        callers = list(self._turns)
        ahead = callers[: callers.index(caller)]
        return round_number + sum(
            min(len(items), round_number + (other in ahead))
            for other, items in self._turns.items()
            if other != caller
        )

    def remove(self, caller: str, item: Item) -> bool:
        """Take `item` out of the line; False if it does not wait."""
        items = self._turns.get(caller)
        if items is None or item not in items:
            return False
        items.remove(item)
        if not items:
            del self._turns[caller]
        return True


@dataclass(frozen=True)
class Waiting:
    """A job that waits, as far as the limits care."""

    caller: str
    source_bytes: int


def waiting_work(caller: str, work: Work) -> Waiting:
    """Return `work` as the limits see it: with the bytes of its candidates in UTF-8."""
    sizes = (len(text.encode("utf-8", "surrogatepass")) for text in sources_of(work))
    return Waiting(caller, sum(sizes))


def refuse_if_full(waiting: Sequence[Waiting], new: Waiting) -> None:
    """Return if `new` may wait beside `waiting`.

    Raises:
        ToolError: It would be one too many, or too large; the message says what to do.
    """
    jobs: Counter[str] = Counter(one.caller for one in waiting)
    sizes: Counter[str] = Counter()
    for one in (*waiting, new):
        sizes[one.caller] += one.source_bytes
    if jobs[new.caller] >= MAX_JOBS_OF_CALLER:
        raise ToolError(
            f"{MAX_JOBS_OF_CALLER} jobs of yours wait already, and no more may: get their results"
            " with job_wait, or end some with job_cancel, and then call again"
        )
    if sizes[new.caller] > MAX_BYTES_OF_CALLER:
        raise ToolError(
            f"the sources of your waiting jobs would be {sizes[new.caller]} bytes, at most"
            f" {MAX_BYTES_OF_CALLER} may be: wait for some of them with job_wait, or hand in less"
            " source text, and then call again"
        )
    if len(waiting) >= MAX_JOBS or sizes.total() > MAX_BYTES:
        raise ToolError(
            f"this server is full: {len(waiting)} jobs of all its callers wait, at most {MAX_JOBS}"
            f" jobs and {MAX_BYTES} bytes of source may; call again when some are done"
        )


def raise_open_files() -> None:
    """Allow this process `OPEN_FILES` open files, or as many as the system lets it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(ValueError, OSError):  # it serves all the same
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


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
