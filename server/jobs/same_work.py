"""Calls that ask for work that is under way already, or that this server has just finished.

A client that lost its connection, or a model that is impatient, asks again for the very same work:
it gets the job that there is. Only for one owner, and only within one server: its settings and its
machine stay the same.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import suppress
from weakref import WeakValueDictionary

from kopt.config.errors import KoptError
from kopt.server.work.requests import CheckWork, CompileWork, ProfileWork, StepWork, Work

from .records import CPU, JobRequest, JobView

_KEPT = 256
"""Finished jobs that are remembered."""


class SameWork:
    """Which job does, or did, a piece of work; for one event loop."""

    def __init__(self) -> None:
        """Know of none."""
        self._jobs: OrderedDict[str, str] = OrderedDict()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def turn(self, work: Work, owner: str) -> asyncio.Lock:
        """Return the lock of this work: of equal calls in one moment the first makes the job."""
        return self._turns.setdefault(_key(work, owner), asyncio.Lock())

    def note(self, request: JobRequest) -> None:
        """Remember that this job does its work."""
        key = _key(request.work, request.owner)
        self._jobs[key] = request.id
        self._jobs.move_to_end(key)
        while len(self._jobs) > _KEPT:
            self._jobs.popitem(last=False)

    def known(self, work: Work, owner: str) -> str | None:
        """Return the job that was last begun for this work; None if there was none."""
        return self._jobs.get(_key(work, owner))

    async def joined(
        self, work: Work, owner: str, view: Callable[[str], Awaitable[JobView]]
    ) -> str | None:
        """Return the job that a call for `work` joins; None where it needs one of its own."""
        job_id = self.known(work, owner)
        if job_id is None:
            return None
        with suppress(KoptError):  # swept or damaged meanwhile
            if serves_again(await view(job_id)):
                return job_id
        self.forget(job_id)
        return None

    def forget(self, job_id: str) -> None:
        """Let no call join this job from now on: it is being cancelled, or serves no longer."""
        for key in [key for key, known in self._jobs.items() if known == job_id]:
            del self._jobs[key]


def serves_again(view: JobView) -> bool:
    """Return whether a job's reply is the one that its work would give now.

    Under way it is, unless it is a step, each of which is a round of its own. Once it has ended, it
    is where the result hangs on the source alone: compiling, and a quick check or a profile on the
    CPU of a kernel that kopt ships. A full check draws new seeds and shapes, a benchmark looks for
    what has become known since, and problems of the user's own may have changed.
    """
    work, needs = view.request.work, view.request.needs
    if isinstance(work, StepWork):
        return False
    if not view.is_over:
        return True
    if view.state != "done" or needs.problems is not None or needs.device != CPU:
        return False
    if isinstance(work, CheckWork):
        return work.level == "quick"
    return isinstance(work, CompileWork | ProfileWork)


def _key(work: Work, owner: str) -> str:
    return hashlib.sha256(f"{owner}\0{work.model_dump_json()}".encode()).hexdigest()
