"""The namespaces of an index: how many records they hold, and which."""

from typing import TYPE_CHECKING

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
