"""Work on the parts of large arrays, by several threads: one core does less than memory could.

numpy lets go of the interpreter's lock while it computes. What is small should not come here: the
threads cost some 50 us.
"""

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")

MOST_THREADS = 8
"""More do not get more out of the memory of one socket."""

_here = threading.local()


def run_wide(does: Callable[[slice], T], parts: Sequence[slice]) -> list[T]:
    """Return what `does` gives for each part, in order; none is under way then.

    Called by `does` itself, the caller's thread does everything: threads that waited for one
    another would never end.
    """
    if len(parts) < 2 or threads() < 2 or getattr(_here, "is_one", False):
        return [does(part) for part in parts]
    futures = [_pool().submit(does, part) for part in parts]
    try:
        return [future.result() for future in futures]
    finally:
        for future in futures:
            future.cancel()
        for future in futures:
            if not future.cancelled():
                future.exception()


def threads() -> int:
    """Return how many are at work at once."""
    return min(MOST_THREADS, len(os.sched_getaffinity(0)))


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads(), "wide work", _begin)


def _begin() -> None:
    _here.is_one = True
