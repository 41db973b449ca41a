"""Pinecone's list of hits for a query: asked while this machine makes its own lists.

The index's own embedding finds candidates, a second model reranks them: the records API in one
call, a document index in two. There is an answer within a deadline, or a reason why there is none.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from kopt.config.errors import BackendUnavailable
from kopt.config.settings import Settings
from kopt.tools.docs.indexing.filters import Filters, running_archs
from kopt.tools.docs.weights import WEIGHTS

from .push_plan import namespace_of
from .push_records import ANY_ARCH, uid_of
from .service import (
    IndexShape,
    find_index,
    opened_client,
    opened_index,
    quoted,
    records_in,
    unavailable,
    within,
)

if TYPE_CHECKING:
    from pinecone import Document, Index, Pinecone

DEADLINE_S = 3.0
"""Limit from the call to the answer, the import of the SDK included."""
REST_S = 30.0
"""How long Pinecone is left alone after a failure; every search meanwhile says why."""
WITHOUT_RERANKER_S = 3600.0
"""How long the order is that of the embedding after the reranker was refused."""
RERANKER = "bge-reranker-v2-m3"
_RERANKING = {"truncate": "END"}
"""The default of the service refuses a query above 256 tokens."""
LEAST_CANDIDATES, MOST_CANDIDATES = 30, 100
"""Candidates that the reranker gets; it takes 100 at most."""
_MOST_CHARACTERS = 1000
"""Length of the part of a query that is sent: neither model reads further."""


@dataclass(frozen=True)
class Question:
    """What is asked of one namespace."""

    namespace: str
    query: str
    filters: Filters
    most: int
    """Number of answers at most."""

    @property
    def text(self) -> str:
        """Return the part of the query that the models read."""
        return self.query[:_MOST_CHARACTERS]

    @property
    def candidates(self) -> int:
        """Return how many neighbors of the embedding are reranked."""
        return min(MOST_CANDIDATES, max(LEAST_CANDIDATES, self.most))

    def metadata_filter(self) -> dict[str, Any]:
        """Return the filters as Pinecone takes them.

        A record for one architecture more than asked for passes too: the index of this machine,
        which looks the hits up, is exact.
        """
        filters = self.filters
        conditions: dict[str, Any] = {"source": {"$in": list(filters.sources or ())}}
        if filters.arch:
            conditions["arch"] = {"$in": [*running_archs(filters.arch), ANY_ARCH]}
        if filters.dtype:
            conditions["dtype"] = {"$in": [filters.dtype]}
        if filters.kind:
            conditions["kind"] = {"$eq": filters.kind}
        return conditions


def pinecone_backend(settings: Settings) -> "PineconeBackend | None":
    """Return what asks Pinecone, the same for the same settings.

    None without a key, and without a library index: what Pinecone finds is read from that.
    """
    if settings.pinecone_api_key is None or namespace_of(settings) is None:
        return None
    return _backend(settings)


class PineconeBackend:
    """Asks one index; a circuit breaker: after a failure it refuses for REST_S without asking."""

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

    def search(self, query: str, filters: Filters, most: int) -> tuple[str, ...]:
        """Return uids of the library index, best first.

        Args:
            query: The user's words; what the models do not read of it is left out.
            filters: What may be an answer, with its sources; without sources there is none.
            most: Number of answers at most.

        Raises:
            BackendUnavailable: No answer after DEADLINE_S, a failure, or one less than REST_S ago;
                the message says what to do.
        """
        namespace = namespace_of(self._settings)
        if namespace is None or not filters.sources:
            return ()
        until, reason = self._resting
        if (left_s := until - self._clock()) > 0:
            raise BackendUnavailable(f"{reason}; it is asked again in {left_s:.0f} s")
        question = Question(namespace, query, filters, most)
        try:
            return within(self._deadline_s, lambda: self._answer(question))
        except BackendUnavailable as error:
            raise self._rested(str(error)) from error
        except TimeoutError as error:
            reason = f"Pinecone did not answer within {self._deadline_s:g} s"
            raise self._rested(reason) from error
        except (ImportError, OSError) as error:  # a broken package; certificates that are not there
            raise self._rested(f"Pinecone's client does not work here: {error}") from error
        except UnicodeError as error:  # a name of a host that no name server could be asked for
            reason = f"Pinecone cannot be reached: PINECONE_INDEX_HOST names no host ({error})"
            raise self._rested(reason) from error
        except Exception as error:  # answers that the client itself stumbles over
            said = quoted(f"{type(error).__name__}: {error}", self._settings)
            raise self._rested(f"Pinecone's client stumbles over what answered: {said}") from error

    def _answer(self, question: Question) -> tuple[str, ...]:
        from pinecone import RetryConfig
        from pinecone.errors import PineconeError

        # One retry, soon: a longer wait would end at the deadline, and the reason be lost.
        retries = RetryConfig(max_retries=1, backoff_factor=0.1, max_wait=0.5)
        try:
            with opened_client(self._settings, retries) as client:
                shape = self._shape or find_index(client, self._settings)
                self._shape = shape
                with opened_index(client, shape.host, retries) as index:
                    found = self._ranked(client, index, shape, question)
                    if not found and records_in(index, question.namespace) == 0:
                        raise BackendUnavailable(
                            f"Pinecone's index {self._settings.pinecone_index_name} has no records"
                            f" of this library (namespace {question.namespace}): upload them with"
                            " `kopt docs push`"
                        )
                    return tuple(uid_of(id_) for id_ in found[: question.most])
        except PineconeError as error:
            raise unavailable(error, self._settings) from error

    def _ranked(
        self, client: "Pinecone", index: "Index", shape: IndexShape, question: Question
    ) -> list[str]:
        """Return the ids in the order of the reranker; of the embedding where that is refused."""
        from pinecone.errors import ApiError

        if self._clock() >= self._reranks_from:
            try:
                return _reranked(client, index, shape, question)
            except ApiError as error:
                # Plans count reranking apart, and models come and go.
                if "rerank" not in error.message.lower():
                    raise
                self._reranks_from = self._clock() + WITHOUT_RERANKER_S
        if shape.kind == "records":
            return _record_ids(index, shape, question)
        return [match.id for match in _matches(index, shape, question)]

    def _rested(self, reason: str) -> BackendUnavailable:
        """Return the error that opens the circuit for REST_S."""
        self._shape = None  # it may have been made anew, or another host be meant
        self._resting = (self._clock() + REST_S, reason)
        return BackendUnavailable(reason)


class RemoteHits:
    """One question to Pinecone, which a thread of its own asks."""

    def __init__(self, query: str, filters: Filters, sources: Sequence[str]) -> None:
        """Prepare the question; `sources` are those of the library index."""
        self._query = query
        admitted = tuple(source for source in sources if filters.admits(source))
        self._filters = replace(filters, sources=admitted)
        self._thread: threading.Thread | None = None
        self._uids: Sequence[str] | None = None
        self.failure: str | None = None
        """Why there is no answer, once `uids` has returned."""

    @property
    def has_answered(self) -> bool:
        """Whether there is an answer, once `uids` has returned."""
        return self._uids is not None

    def ask(self, settings: Settings) -> None:
        """Start asking; without a key nothing happens."""
        if settings.pinecone_api_key is not None:
            self._thread = threading.Thread(target=self._ask, args=(settings,), daemon=True)
            self._thread.start()

    def uids(self) -> Sequence[str]:
        """Return the uids of the hits, best first, once they are there: within DEADLINE_S."""
        if self._thread is not None:
            self._thread.join()
        return self._uids or ()

    def _ask(self, settings: Settings) -> None:
        try:
            if (backend := pinecone_backend(settings)) is not None:
                self._uids = backend.search(self._query, self._filters, WEIGHTS.remote_depth)
        except BackendUnavailable as error:
            self.failure = str(error)


@lru_cache(maxsize=8)
def _backend(settings: Settings) -> PineconeBackend:
    return PineconeBackend(settings)


def _reranked(
    client: "Pinecone", index: "Index", shape: IndexShape, question: Question
) -> list[str]:
    """Return the ids of what answers the question, in the order of the reranker."""
    reranking: dict[str, Any] = {
        "model": RERANKER,
        "rank_fields": [shape.text_field],
        "parameters": _RERANKING,
    }
    if shape.kind == "records":
        most = min(question.most, question.candidates)
        return _record_ids(index, shape, question, rerank={**reranking, "top_n": most})
    matches = _matches(index, shape, question)
    texts = [{shape.text_field: str(match.get(shape.text_field) or "")} for match in matches]
    if not texts:
        return []
    order = client.inference.rerank(
        **reranking,
        query=question.text,
        documents=texts,
        return_documents=False,
        top_n=min(question.most, len(texts)),
    )
    return [matches[one.index].id for one in order.data if 0 <= one.index < len(matches)]


def _record_ids(
    index: "Index", shape: IndexShape, question: Question, **reranking: Any
) -> list[str]:
    found = index.search(
        namespace=question.namespace,
        top_k=question.candidates,
        inputs={"text": question.text},
        filter=question.metadata_filter(),
        fields=[shape.text_field],  # what the reranker reads must be returned
        **reranking,
    )
    return [hit.id for hit in found.result.hits]


def _matches(index: "Index", shape: IndexShape, question: Question) -> "Sequence[Document]":
    from pinecone.models.documents.score_by import EmbedQuery

    found = index.documents.search(
        namespace=question.namespace,
        top_k=question.candidates,
        score_by=[EmbedQuery(field=shape.text_field, query=question.text)],
        include_fields=[shape.text_field],
        filter=question.metadata_filter(),
    )
    return found.matches
