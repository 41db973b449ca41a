"""Whose turn it is on a GPU: one thread of this process, and one process of the host.

What only makes ready on the host, a worker's imports or the images of buffers, needs the first
alone, so that the GPU is another's meanwhile.
"""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

from kopt.tools.devices.gpu_time import count_gpu_time

from .ticket_lock import TicketLock, Wait
from .worker_pool import WorkerPool


class GpuTurns:
    """The turns of one opened GPU, over its workers."""

    def __init__(
        self,
        lock: TicketLock,
        pool: WorkerPool,
        tell: Callable[[Wait], None],
    ) -> None:
        """Hold nothing yet.

        Args:
            lock: The GPU's lock among the processes of this host.
            pool: The workers.
            tell: Called with the place in the queue when others are before this process, and each
                time that it changes.
        """
        self._lock = lock
        self._pool = pool
        self._tell = tell
        self._threads = threading.RLock()  # of everything below, and of the pool
        self._depth = 0
        self._is_held = False

    @contextmanager
    def of_thread(self) -> Generator[None]:
        """Keep other threads of this process from the workers; another process may have the GPU.

        The current worker is ended when an exception leaves the outermost turn of the thread: what
        it is doing then is unknown.
        """
        with self._threads:
            self._depth += 1
            try:
                yield
            except BaseException:
                if self._depth == 1:
                    self._pool.discard()
                raise
            finally:
                self._depth -= 1
            if not self._depth:
                self._pool.refill()  # now that nothing is timed

    @contextmanager
    def hold(self) -> Generator[None]:
        """Hold the GPU: this thread among those of the process, the process among all others.

        Nothing is waited for where the same thread holds it already.
        """
        with self.of_thread():
            if self._is_held:
                yield
                return
            with self._lock.hold(self._tell):
                self._is_held = True
                began = time.monotonic()
                try:
                    yield
                except BaseException:
                    self._pool.discard()  # before another process has the GPU
                    raise
                finally:
                    self._is_held = False
                    count_gpu_time(time.monotonic() - began)
