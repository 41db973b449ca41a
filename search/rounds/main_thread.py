"""How other threads have the main thread do something: it alone writes the run's store.

A branch that waits for a model, an evaluation that has ended: both leave a piece of work here, and
the main thread, which waits for nothing else, does them one by one.
"""

import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, wait
from dataclasses import dataclass
from typing import Any, TypeVar

from kopt.search.models.errors import Stopped
from kopt.search.models.halt import Halt

T = TypeVar("T")
_LOOK_EVERY_S = 0.5  # whoever waits asks so often whether the run is being stopped
_SIGNALS_SEEN_EVERY_S = 1.0
"""The owner wakes so often: a signal that the kernel hands to another thread ends no wait of this
one, and Ctrl-C would be noticed when the next piece of work comes."""


@dataclass(frozen=True)
class _Letter:
    work: Callable[[], Any]
    answer: "Future[Any]"

    def open(self) -> None:
        try:
            found = self.work()
        except Exception as error:  # whoever asked for the work is the frame that handles it
            self.answer.set_exception(error)
        except BaseException:
            self.answer.set_exception(Stopped("the run is being stopped"))
            raise
        else:
            self.answer.set_result(found)


class Mailbox:
    """Work for the thread that made it, in the order in which it came."""

    def __init__(self, halt: Halt | None = None) -> None:
        """Belong to the calling thread; `halt` is told when the mailbox is closed."""
        self.halt = halt or Halt()
        self._owner = threading.get_ident()
        self._lock = threading.Lock()
        self._is_closed = False
        self._waiting: queue.SimpleQueue[_Letter] = queue.SimpleQueue()

    def do(self, work: Callable[[], T]) -> T:
        """Have the owner do `work` and return what it returned, or raise what it raised.

        Raises:
            Stopped: The run is being stopped; `work` was not done, or nobody knows.
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
                self._waiting.put(_Letter(work, answer))
        return answer

    def attend(self, timeout_s: float | None = None) -> None:
        """Wait for one piece of work and do it; the owner's part. `timeout_s`: no longer."""
        ends_at = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            left = None if ends_at is None else max(0.0, ends_at - time.monotonic())
            slice_s = _SIGNALS_SEEN_EVERY_S if left is None else min(left, _SIGNALS_SEEN_EVERY_S)
            try:
                letter = self._waiting.get(timeout=slice_s)
            except queue.Empty:
                if left is not None and left <= slice_s:
                    return
                continue
            letter.open()
            return

    def close(self) -> None:
        """End all waiting for the owner, for good: whoever waits or will wait is told to stop."""
        self.halt.stop()
        with self._lock:
            self._is_closed = True
        while not self._waiting.empty():
            self._waiting.get().answer.set_exception(Stopped("the run is being stopped"))
