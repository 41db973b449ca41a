"""Running a few blocking jobs at once so that an interrupt is never held up by them.

The threads are daemons: those of an executor are joined at exit, and Ctrl-C would then wait for a
compiler that may take a minute. When this process ends, the sandbox ends its compilers.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from itertools import count
from typing import TypeVar

T = TypeVar("T")


def run_parallel(jobs: Sequence[Callable[[], T]], threads: int) -> list[T]:
    """Return the results of `jobs` in their order, at most `threads` of them running at once.

    The first exception of a job is raised as it is; jobs that have not begun by then never do.
    """
    if len(jobs) <= 1 or threads <= 1:
        return [job() for job in jobs]
    futures: list[Future[T]] = [Future() for _ in jobs]
    numbers = count()
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set() and (number := next(numbers)) < len(jobs):
            try:
                futures[number].set_result(jobs[number]())
            except BaseException as error:  # handed to the caller: a thread has none of its own
                futures[number].set_exception(error)

    for _ in range(min(threads, len(jobs))):
        threading.Thread(target=work, name="compile", daemon=True).start()
    try:
        return [future.result() for future in futures]
    finally:
        stop.set()
