"""Pinecone's list, asked for while this machine makes its own; a failure only leaves it out."""

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Thread
from typing import Any, ParamSpec, TypeVar

from kopt.config.errors import BackendUnavailable
from kopt.config.settings import Settings
from kopt.tools.docs.indexing.filters import Filters, running_archs
from kopt.tools.docs.weights import WEIGHTS


class RemoteHits:
    """One question to Pinecone, under way from its making on."""

    def __init__(self, query: str, filters: Filters, sources: Sequence[str]) -> None:
        """Nothing is asked yet."""
        self._query = query
        self._filters = filters
        self._sources = tuple(source for source in sources if filters.admits(source))
        self._thread: threading.Thread | None = None
        self._uids: Sequence[str] = ()
        self.failure: str | None = None
        """Why there is no answer, once `uids` has returned."""
        self.has_answered = False
        """Known once `uids` has returned."""

    def ask(self, settings: Settings) -> None:
        """Begin to ask; nothing happens without a key."""
        if settings.pinecone_api_key is None:
            return
        self._thread = threading.Thread(target=self._ask, args=(settings,), daemon=True)
        self._thread.start()

    def uids(self) -> Sequence[str]:
        """Return the uids of the hits, best first, once they are there: within 3 s."""
        if self._thread is not None:
            self._thread.join()
        return self._uids

    def _ask(self, settings: Settings) -> None:
        # Not at the top: only who has a key loads the service's client.
        from .asking import RemoteFilters, pinecone_backend

        backend = pinecone_backend(settings)
        if backend is None:
            return
        filters = RemoteFilters(
            sources=self._sources,
            archs=running_archs(self._filters.arch) if self._filters.arch else (),
            dtype=self._filters.dtype,
            kind=self._filters.kind,
        )
        try:
            self._uids = backend.search(self._query, filters, WEIGHTS.remote_depth)
            self.has_answered = True
        except BackendUnavailable as error:
            self.failure = str(error)


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
