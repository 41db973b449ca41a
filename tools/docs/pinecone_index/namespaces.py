"""The namespaces of an index: how many records they hold, and which."""

from typing import TYPE_CHECKING

from .index_shape import IndexShape

if TYPE_CHECKING:
    from pinecone import AsyncIndex


async def records_in(index: "AsyncIndex", namespace: str) -> int:
    """Return how many records the namespace has; a few seconds behind what was written.

    Raises:
        PineconeError: The request failed.
    """
    stats = await index.describe_index_stats()
    known = stats.namespaces.get(namespace)
    return known.vector_count if known else 0


async def ids_in(index: "AsyncIndex", shape: IndexShape, namespace: str) -> frozenset[str]:
    """Return the ids of all records of the namespace.

    Raises:
        PineconeError: A request failed.
    """
    if shape.kind == "documents":
        listed = index.documents.list(namespace=namespace)
        return frozenset([document.id async for document in listed])
    pages = index.list(namespace=namespace)
    return frozenset([one.id async for page in pages for one in page.vectors if one.id])
