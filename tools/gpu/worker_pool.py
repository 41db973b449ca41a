"""The worker of a (GPU, problem) and mostly one spare; it decides when a process is replaced.

The spare has done its imports and has no context, so that it takes over within the time that a
context needs. Only one thread may use the pool at a time; the spare starts on a thread of its own.
"""

import threading
from collections.abc import Callable
from pathlib import Path

import kopt
from kopt.config.errors import InfraError, KoptError
from kopt.kernels.problem import Problem

from .messages import StartAnswer, StartRequest
from .worker_process import WorkerProcess, ask_for

MAX_PROGRAMS = 200
"""Candidates that one worker serves: what a driver leaks stays small."""
# On a host of eight GPUs without persistence mode the driver wakes all of them first.
_CONTEXT_S = 120.0

MakeWorker = Callable[[Path | None, bool], WorkerProcess]
"""Make an unstarted worker that may read a problem's folder; True: it imports libraries early."""


class _Spare:
    """A worker whose imports run on a thread."""

    def __init__(self, worker: WorkerProcess) -> None:
        self.worker = worker
        self.failed = False
        self._thread = threading.Thread(target=self._start, name="spare worker", daemon=True)
        self._thread.start()

    def settle(self, timeout_s: float | None = None) -> None:
        """Wait until the imports are done or have failed."""
        self._thread.join(timeout_s)

    def end(self) -> None:
        """End the process, also in the middle of its start."""
        self.worker.end()
        self._thread.join()

    def _start(self) -> None:
        try:
            self.worker.start()
        except KoptError:  # met again, and reported, when the next one starts
            self.failed = True


class WorkerPool:
    """At most two processes: the current worker and a spare."""

    def __init__(
        self, make: MakeWorker, start: Callable[[], StartRequest], *, has_spare: bool = True
    ) -> None:
        """Start nothing yet.

        Args:
            make: Makes a worker.
            start: Gives what a new worker is asked first.
            has_spare: Whether a spare is kept; one candidate alone hardly ever needs it, and a
                timing would wait for its imports.
        """
        self._has_spare = has_spare
        self._make = make
        self._start = start
        self._folder: Path | None = None
        self._library = False
        self._worker: WorkerProcess | None = None
        self._has_context = False
        self._programs: set[str] = set()
        self._spare: _Spare | None = None
        self._is_closed = False

    def must_replace(self, folder: Path | None, program: str | None) -> bool:
        """Return whether the current worker ends before what `process_for` is asked for.

        Its context goes with it, which is felt by who measures: hold the GPU, and `discard` it.
        """
        if self._worker is None:
            return False
        is_full = len(self._programs) == MAX_PROGRAMS and program not in (None, *self._programs)
        return is_full or folder not in (None, self._folder)

    def process_for(self, folder: Path | None, program: str | None, library: bool) -> WorkerProcess:
        """Return a worker whose imports are done; another problem or too many programs replace it.

        Args:
            folder: The problem's, which the worker may read; None for any worker.
            program: The candidate that is about to run, counted once per worker; or None.
            library: Whether a library side is about to run: the next spare then imports early.

        Raises:
            SetupError: The sandbox or the imports of a worker do not work here.
            InfraError: It ended; or the pool is closed.
        """
        self._refuse_if_closed()
        if self.must_replace(folder, program):
            self.discard()
        if folder not in (None, self._folder):
            if not is_packaged(folder):
                self._drop_spare()
            self._folder = folder
        if library and not self._library:
            self._library = True
            self._drop_spare()
        if program is not None:
            self._programs.add(program)
        if self._worker is None:
            self._worker = self._started()
            self._has_context = False
        return self._worker

    @property
    def has_context(self) -> bool:
        """Whether the current worker has one."""
        return self._worker is not None and self._has_context

    def create_context(self) -> None:
        """Create the context of the current worker: only by who holds the GPU.

        Raises:
            InfraError: The worker ended, or could not; or the pool is closed.
        """
        worker = self._worker
        if worker is None:
            raise InfraError("the GPU was closed while it was in use")
        try:
            self._ask_for_context(worker)
            self._refuse_if_closed()
        except BaseException:
            self.discard()
            raise
        self._has_context = True

    def discard(self) -> None:
        """End the worker: the next one is the spare."""
        worker, self._worker = self._worker, None
        self._programs.clear()
        if worker is not None:
            worker.end()

    def end_current(self) -> None:
        """End the worker under the thread that uses it; this one may be another."""
        worker = self._worker
        if worker is not None:
            worker.end()

    def keep_spare(self) -> None:
        """Have a spare from the next `refill` on."""
        self._has_spare = True

    def refill(self) -> None:
        """Start a spare in the background if there is none; call it when nothing is timed."""
        wanted = self._has_spare and not self._is_closed
        if wanted and self._spare is None and self._worker is not None:
            self._spare = _Spare(self._make(self._folder, self._library))

    def settle(self, timeout_s: float) -> None:
        """Wait until no spare is starting, so that nothing runs beside a measurement."""
        if self._spare is not None:
            self._spare.settle(timeout_s)

    def close(self) -> None:
        """Leave no process, and start none again: another thread may be at work here."""
        self._is_closed = True
        self.discard()
        self._drop_spare()

    def _started(self) -> WorkerProcess:
        spare = self._take_spare()
        worker = spare or self._make(self._folder, self._library)
        try:
            if spare is None:
                worker.start()
            self._refuse_if_closed()
        except BaseException:
            worker.end()
            raise
        return worker

    def _refuse_if_closed(self) -> None:
        if self._is_closed:
            raise InfraError("the GPU was closed while it was in use")

    def _take_spare(self) -> WorkerProcess | None:
        spare, self._spare = self._spare, None
        if spare is None:
            return None
        spare.settle()
        if spare.failed:
            spare.end()
            return None
        return spare.worker

    def _drop_spare(self) -> None:
        spare, self._spare = self._spare, None
        if spare is not None:
            spare.end()

    def _ask_for_context(self, worker: WorkerProcess) -> None:
        request = self._start()
        answer = ask_for(StartAnswer, worker, request, _CONTEXT_S)
        if not isinstance(answer, StartAnswer):
            raise InfraError(f"the GPU worker created no context: {answer.detail}")
        if answer.facts.uuid != request.device_uuid:
            raise InfraError(f"the worker opened {answer.facts.uuid}, not {request.device_uuid}")


def is_packaged(folder: Path | None) -> bool:
    """Return whether every worker may read `folder`: it is a part of kopt."""
    if folder is None:
        return True
    parents = (*folder.parents, *folder.resolve().parents)
    return any(root in parents or root.resolve() in parents for root in map(Path, kopt.__path__))


def needed_folder(problem: Problem) -> Path | None:
    """Return the folder that a worker must be able to read; None where any worker will do.

    A problem that comes with kopt and has no libraries, the plain copy, needs nothing of its own:
    it is timed amid another problem's candidates, whose worker stays.
    """
    needs_none = not problem.baselines and is_packaged(problem.folder)
    return None if needs_none else problem.folder
