"""The main thread, which alone writes the run's store, and the worker threads of one phase.

A branch that waits for a model and an evaluation that has ended both leave a function in the queue
of the main thread, which waits for nothing else and calls them one by one. Workers are daemons:
when kopt is told to stop it does not wait for a reply that takes ten minutes. A thread that is left
behind can write nothing, because the queue is closed.
"""

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from kopt.search.models.errors import BudgetSpent, Halt, Stopped

T = TypeVar("T")
_LOOK_EVERY_S = 0.5  # how often a waiting thread looks whether the run is being stopped
_SIGNALS_SEEN_EVERY_S = 1.0
"""The owner wakes so often: a signal that the kernel hands to another thread ends no wait of this
one, and Ctrl-C would be noticed when the next piece of work comes."""


@dataclass(frozen=True)
class _Task:
    work: Callable[[], Any]
    answer: "Future[Any]"

    def run(self) -> None:
        try:
            found = self.work()
        except Exception as error:  # the caller is the frame that handles it
            self.answer.set_exception(error)
        except BaseException:
            self.answer.set_exception(Stopped("the run is being stopped"))
            raise
        else:
            self.answer.set_result(found)


class MainThread:
    """Work for the thread that made it, in the order in which it came."""

    def __init__(self, halt: Halt | None = None) -> None:
        """Be the calling thread; `halt` is set when the queue is closed."""
        self.halt = halt or Halt()
        self._owner = threading.get_ident()
        self._lock = threading.Lock()
        self._is_closed = False
        self._tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()

    def do(self, work: Callable[[], T]) -> T:
        """Have the owner do `work` and return what it returned, or raise what it raised.

        Raises:
            Stopped: The run is being stopped; whether `work` was done is not known.
        """
        if threading.get_ident() == self._owner:
            return work()
        return self.wait_for(self.post(work))

    def wait_for(self, answer: "Future[T]") -> T:
        """Wait, in another thread than the owner, for something that the owner will answer.

        Raises:
            Stopped: The run is being stopped.
        """
        while not answer.done():
            wait([answer], timeout=_LOOK_EVERY_S)
            if not answer.done():
                self.halt.check()
        return answer.result()

    def post(self, work: Callable[[], T]) -> "Future[T]":
        """Leave `work` for the owner, from any thread; after `close` it is never done."""
        answer: Future[T] = Future()
        with self._lock:
            if self._is_closed:
                answer.set_exception(Stopped("the run is being stopped"))
            else:
                self._tasks.put(_Task(work, answer))
        return answer

    def attend(self, timeout_s: float | None = None) -> None:
        """Wait for one piece of work and do it; the owner's part. `timeout_s`: no longer."""
        ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = None if ends_at is None else max(0.0, ends_at - time.monotonic())
            slice_s = _SIGNALS_SEEN_EVERY_S if left is None else min(left, _SIGNALS_SEEN_EVERY_S)
            try:
                task = self._tasks.get(timeout=slice_s)
            except queue.Empty:
                if left is not None and left <= slice_s:
                    return
                continue
            task.run()
            return

    def close(self) -> None:
        """End all waiting for the owner, for good: threads that wait are told to stop."""
        self.halt.stop()
        with self._lock:
            self._is_closed = True
        while not self._tasks.empty():
            self._tasks.get().answer.set_exception(Stopped("the run is being stopped"))


class WorkerThreads:
    """Threads that the main thread waits for while it works through its queue."""

    def __init__(self, main_thread: MainThread) -> None:
        """Begin without workers; used by the main thread alone."""
        self._main_thread = main_thread
        self._working = 0
        self.spent: BudgetSpent | None = None
        """What the first worker said that did not go on because a budget is spent."""
        self._failure: BaseException | None = None

    @property
    def is_working(self) -> bool:
        """Whether any worker is under way."""
        return self._working > 0

    def start(self, name: str, work: Callable[[], None]) -> None:
        """Have a thread of its own do `work`."""
        self._working += 1
        run = partial(self._run, work)
        threading.Thread(target=run, name=name, daemon=True).start()

    def check(self) -> None:
        """Raise what a worker raised, once all of them have ended: what they cost is not lost."""
        if self._failure is not None and not self.is_working:
            raise self._failure

    def _run(self, work: Callable[[], None]) -> None:
        failure: BaseException | None = None
        try:
            work()
        except BaseException as error:  # the main thread is the frame that handles it
            failure = error
        self._main_thread.post(partial(self._end, failure))

    def _end(self, failure: BaseException | None) -> None:
        self._working -= 1
        if isinstance(failure, BudgetSpent):
            self.spent = self.spent or failure
        elif failure is not None and not isinstance(failure, Stopped):
            self._failure = self._failure or failure
