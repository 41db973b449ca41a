"""The filters of a search as Pinecone takes them."""

from dataclasses import dataclass
from typing import Any

ANY_ARCH = "any"
"""The architecture of what is bound to none: a list that is empty matches no filter."""


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
