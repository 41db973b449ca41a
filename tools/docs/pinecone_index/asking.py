"""One question to an index: its own embedding finds candidates, a second model puts them in order.

The records API does both in one call, a document index in two. Where the plan has no reranking
left, the order is that of the embedding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .index_shape import IndexShape
from .remote_filters import RemoteFilters
from .remote_ids import uid_of

if TYPE_CHECKING:
    from pinecone import AsyncIndex, AsyncPinecone, Document
    from pinecone.errors import PineconeError

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
