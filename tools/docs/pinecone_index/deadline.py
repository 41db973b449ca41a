"""A coroutine run in a thread of its own, whose caller waits for it until a deadline.

Whatever the coroutine hangs in, an import or a name server included, the caller goes on in time,
and no thread keeps the process from ending.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")


def within(deadline_s: float, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return what `work` comes back with, or raise what it raises.

    Raises:
        TimeoutError: It took longer; it is cancelled and not waited for.
    """
    ends_at = time.monotonic() + deadline_s
    outcome: Future[T] = Future()
    Thread(target=_run, args=(work, ends_at, outcome), name="kopt-deadline", daemon=True).start()
    return outcome.result(deadline_s)


def new_loop() -> asyncio.AbstractEventLoop:
    """Return an event loop that looks up names in daemon threads."""
    loop = asyncio.new_event_loop()
    loop.set_default_executor(_DaemonThreads())
    return loop


def _run(work: Callable[[], Coroutine[Any, Any, T]], ends_at: float, outcome: "Future[T]") -> None:
    async def bounded() -> T:
        async with asyncio.timeout(ends_at - time.monotonic()):
            return await work()

    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            outcome.set_result(runner.run(bounded()))
    except BaseException as error:  # the outermost frame of this thread
        outcome.set_exception(error)


class _DaemonThreads(ThreadPoolExecutor):
    """A thread for each call.

    Those of the pool itself are joined when the process ends: a name server that does not answer
    would hold it for as long as the resolver is patient.
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> "Future[T]":
        """Start `fn` at once."""
        future: Future[T] = Future()

        def call() -> None:
            try:
                result = fn(*args, **kwargs)
            except BaseException as error:  # as the pool does
                future.set_exception(error)
            else:
                future.set_result(result)

        Thread(target=call, name="kopt-lookup", daemon=True).start()
        return future
