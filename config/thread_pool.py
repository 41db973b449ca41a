"""A pool of threads that Ctrl-C does not have to wait for."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context


@contextmanager
def thread_pool(workers: int, name: str) -> Generator[ThreadPoolExecutor]:
    """Give a pool of `workers` threads; what is still queued at the end is dropped.

    The end waits for running work, except after KeyboardInterrupt: the threads wait for children
    that end with this process, and the command line leaves at once. The threads have the context
    variables of the thread that opened the pool.
    """
    context = copy_context()

    def take_over_context() -> None:
        for variable, value in context.items():
            variable.set(value)

    pool = ThreadPoolExecutor(workers, name, take_over_context)
    try:
        yield pool
    except KeyboardInterrupt:
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    except BaseException:
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown(wait=True, cancel_futures=True)
