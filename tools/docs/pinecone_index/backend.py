"""`PineconeBackend`: uids that Pinecone ranks for a query, within a deadline or not at all."""

import time
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

from kopt.config.errors import BackendUnavailable
from kopt.config.settings import Settings

from .asking import Question, embedded_order, is_about_reranking, reranked
from .client import opened_client, opened_index
from .deadline import within
from .failures import namespace_empty, stumbled, unavailable
from .index_shape import IndexShape, find_index
from .library_version import namespace_of
from .namespaces import records_in
from .remote_filters import RemoteFilters

if TYPE_CHECKING:
    from pinecone import AsyncIndex, AsyncPinecone

DEADLINE_S = 3.0
"""From the call to the answer, the import of the SDK included."""
REST_S = 30.0
"""After a failure Pinecone is not asked for so long, and every search says why."""
WITHOUT_RERANKER_S = 3600.0
"""After it was refused, the order is that of the embedding for so long."""


def pinecone_backend(settings: Settings) -> "PineconeBackend | None":
    """Return what asks Pinecone, the same for the same settings.

    None without a key, and without a library index: what Pinecone finds is read from that.
    """
    if settings.pinecone_api_key is None or namespace_of(settings) is None:
        return None
    return _backend(settings)


class PineconeBackend:
    """Asks one index. It remembers of which kind that is, and failures for REST_S."""

    def __init__(
        self,
        settings: Settings,
        deadline_s: float = DEADLINE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Ask nothing yet."""
        self._settings = settings
        self._deadline_s = deadline_s
        self._clock = clock
        # Searches run in several threads. Each of these is replaced whole, and an old one that is
        # read meanwhile costs a request, nothing else.
        self._shape: IndexShape | None = None
        self._resting = (clock(), "")  # until when, why
        self._reranks_from = clock()

    def search(self, query: str, filters: RemoteFilters, most: int) -> tuple[str, ...]:
        """Return uids of the library index, best first.

        Args:
            query: In the user's words; what the models do not read of it is left out.
            filters: What may be an answer; without sources there is none.
            most: Answers at most.

        Raises:
            BackendUnavailable: No answer after DEADLINE_S, a failure, or one less than REST_S ago;
                the message says what to do.
        """
        namespace = namespace_of(self._settings)
        if namespace is None or not filters.sources:
            return ()
        self._refuse_while_resting()
        question = Question(namespace, query, filters, most)
        try:
            return within(self._deadline_s, lambda: self._answer(question))
        except BackendUnavailable as error:
            self._rest(str(error))
            raise
        except TimeoutError as error:
            reason = f"Pinecone did not answer within {self._deadline_s:g} s"
            self._rest(reason)
            raise BackendUnavailable(reason) from error
        except (ImportError, OSError) as error:  # a broken package; certificates that are not there
            reason = f"Pinecone's client does not work here: {error}"
            self._rest(reason)
            raise BackendUnavailable(reason) from error
        except Exception as error:  # answers that the client itself stumbles over
            unexpected = stumbled(error, self._settings)
            self._rest(str(unexpected))
            raise unexpected from error

    async def _answer(self, question: Question) -> tuple[str, ...]:
        from pinecone import RetryConfig
        from pinecone.errors import PineconeError

        # One retry, soon: a longer wait would end at the deadline, and the reason be lost.
        retries = RetryConfig(max_retries=1, backoff_factor=0.1, max_wait=0.5)
        try:
            async with opened_client(self._settings, retries) as client:
                shape = self._shape or await find_index(client, self._settings)
                self._shape = shape
                async with opened_index(client, shape.host, retries) as index:
                    found = await self._ranked(client, index, shape, question)
                    if not found and await records_in(index, question.namespace) == 0:
                        raise namespace_empty(question.namespace, self._settings)
                    return found
        except PineconeError as error:
            raise unavailable(error, self._settings) from error

    async def _ranked(
        self, client: "AsyncPinecone", index: "AsyncIndex", shape: IndexShape, question: Question
    ) -> tuple[str, ...]:
        """Return the reranked answer; that of the embedding where reranking is refused."""
        from pinecone.errors import ApiError

        if self._clock() >= self._reranks_from:
            try:
                return await reranked(client, index, shape, question)
            except ApiError as error:
                if not is_about_reranking(error):
                    raise
                self._reranks_from = self._clock() + WITHOUT_RERANKER_S
        return await embedded_order(index, shape, question)

    def _refuse_while_resting(self) -> None:
        until, reason = self._resting
        left_s = until - self._clock()
        if left_s > 0:
            raise BackendUnavailable(f"{reason}; it is asked again in {left_s:.0f} s")

    def _rest(self, reason: str) -> None:
        self._shape = None  # it may have been made anew, or another host be meant
        self._resting = (self._clock() + REST_S, reason)


@lru_cache(maxsize=8)
def _backend(settings: Settings) -> PineconeBackend:
    return PineconeBackend(settings)
