"""A pool of threads that Ctrl-C does not have to wait for."""

from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context

from .pollable_event import PollableEvent

_INTERRUPT: ContextVar[PollableEvent | None] = ContextVar("interrupt", default=None)


def pool_interrupt() -> PollableEvent | None:
    """Return what is set when Ctrl-C ends the pool that this thread works for; None outside."""
    return _INTERRUPT.get()


@contextmanager
def thread_pool(workers: int, name: str) -> Generator[ThreadPoolExecutor]:
    """Give a pool of `workers` threads; what is still queued at the end is dropped.

    The end waits for running work, except after KeyboardInterrupt: `pool_interrupt` is set, which
    ends the children that threads wait for, and the command line leaves at once. The threads have
    the context variables of the thread that opened the pool.
    """
    interrupt = _INTERRUPT.get() or PollableEvent()
    context = copy_context()
    context.run(_INTERRUPT.set, interrupt)

    def take_over_context() -> None:
        for variable, value in context.items():
            variable.set(value)

    pool = ThreadPoolExecutor(workers, name, take_over_context)
    try:
        yield pool
    except KeyboardInterrupt:
        interrupt.set()
        pool.shutdown(wait=False, cancel_futures=True)
        raise
    except BaseException:
        pool.shutdown(wait=True, cancel_futures=True)
        raise
    pool.shutdown(wait=True, cancel_futures=True)
