"""One question to an index: its own embedding finds candidates, a second model puts them in order.

The records API does both in one call, a document index in two. Where the plan has no reranking
left, the order is that of the embedding.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kopt.config.errors import BackendUnavailable
from kopt.config.settings import Settings

from .push_plan import namespace_of
from .push_records import ANY_ARCH, uid_of
from .remote_hits import within
from .service import (
    IndexShape,
    find_index,
    namespace_empty,
    opened_client,
    opened_index,
    records_in,
    stumbled,
    unavailable,
)

if TYPE_CHECKING:
    from pinecone import AsyncIndex, AsyncPinecone, Document
    from pinecone.errors import PineconeError


@dataclass(frozen=True)
class RemoteFilters:
    """What may be an answer at all."""

    sources: tuple[str, ...]
    archs: tuple[str, ...] = ()
    """What the code may be written for, as tags; () for anything. A list that has one more than
    these passes too: the index here, which looks the hits up, is exact."""
    dtype: str | None = None
    kind: str | None = None

    def as_metadata(self) -> dict[str, Any]:
        """Return the filter as Pinecone takes it."""
        conditions: dict[str, Any] = {"source": {"$in": list(self.sources)}}
        if self.archs:
            conditions["arch"] = {"$in": [*self.archs, ANY_ARCH]}
        if self.dtype:
            conditions["dtype"] = {"$in": [self.dtype]}
        if self.kind:
            conditions["kind"] = {"$eq": self.kind}
        return conditions


RERANKER = "bge-reranker-v2-m3"
_RERANKING = {"truncate": "END"}
"""Its default refuses a query above 256 tokens."""
LEAST_CANDIDATES, MOST_CANDIDATES = 30, 100
"""For the reranker, which takes 100 at most."""
_MOST_CHARACTERS = 1000
"""Of a query: neither model reads further."""


@dataclass(frozen=True)
class Question:
    """What is asked of one namespace."""

    namespace: str
    query: str
    filters: RemoteFilters
    most: int
    """Answers at most."""

    @property
    def text(self) -> str:
        """Return the part of the query that the models read."""
        return self.query[:_MOST_CHARACTERS]

    @property
    def candidates(self) -> int:
        """Return how many are embedded neighbors before reranking."""
        return min(MOST_CANDIDATES, max(LEAST_CANDIDATES, self.most))


async def reranked(
    client: "AsyncPinecone", index: "AsyncIndex", shape: IndexShape, question: Question
) -> tuple[str, ...]:
    """Return the uids of what answers the question, in the order of the reranker.

    Raises:
        PineconeError: A request failed.
    """
    if shape.kind == "records":
        reranking = {
            "model": RERANKER,
            "rank_fields": [shape.text_field],
            "top_n": min(question.most, question.candidates),
            "parameters": _RERANKING,
        }
        found = await index.search(**_search(shape, question), rerank=reranking)
        return tuple(uid_of(hit.id) for hit in found.result.hits[: question.most])
    matches = await _matches(index, shape, question)
    texts = [{shape.text_field: str(match.get(shape.text_field) or "")} for match in matches]
    if not texts:
        return ()
    order = await client.inference.rerank(
        model=RERANKER,
        query=question.text,
        documents=texts,
        rank_fields=[shape.text_field],
        return_documents=False,
        top_n=min(question.most, len(texts)),
        parameters=_RERANKING,
    )
    ranked = [matches[one.index].id for one in order.data if 0 <= one.index < len(matches)]
    return tuple(uid_of(id_) for id_ in ranked[: question.most])


async def embedded_order(
    index: "AsyncIndex", shape: IndexShape, question: Question
) -> tuple[str, ...]:
    """Return the same in the order of the embedding, without a reranker.

    Raises:
        PineconeError: The request failed.
    """
    if shape.kind == "records":
        found = await index.search(**_search(shape, question))
        ids = [hit.id for hit in found.result.hits]
    else:
        ids = [match.id for match in await _matches(index, shape, question)]
    return tuple(uid_of(id_) for id_ in ids[: question.most])


def is_about_reranking(error: "PineconeError") -> bool:
    """Say whether the service refuses the reranker and not the search.

    Plans count reranking apart (500 requests a month on the Starter plan, by its documentation),
    and models come and go.
    """
    return "rerank" in error.message.lower()


def _search(shape: IndexShape, question: Question) -> dict[str, Any]:
    return {
        "namespace": question.namespace,
        "top_k": question.candidates,
        "inputs": {"text": question.text},
        "filter": question.filters.as_metadata(),
        "fields": [shape.text_field],  # what the reranker reads must be returned
    }


async def _matches(
    index: "AsyncIndex", shape: IndexShape, question: Question
) -> "Sequence[Document]":
    from pinecone.models.documents.score_by import EmbedQuery

    found = await index.documents.search(
        namespace=question.namespace,
        top_k=question.candidates,
        score_by=[EmbedQuery(field=shape.text_field, query=question.text)],
        include_fields=[shape.text_field],
        filter=question.filters.as_metadata(),
    )
    return found.matches


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
