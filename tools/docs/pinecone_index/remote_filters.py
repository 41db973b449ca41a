"""The filters of a search as Pinecone takes them."""

from dataclasses import dataclass
from typing import Any

ANY_ARCH = "any"
"""The architecture of what is bound to none: a list that is empty matches no filter."""


@dataclass(frozen=True)
class RemoteFilters:
    """What may be an answer at all."""

    sources: tuple[str, ...]
    arch: str | None = None
    """As a tag: sm90."""
    dtype: str | None = None
    kind: str | None = None

    def as_metadata(self) -> dict[str, Any]:
        """Return the filter as Pinecone takes it."""
        conditions: dict[str, Any] = {"source": {"$in": list(self.sources)}}
        if self.arch:
            conditions["arch"] = {"$in": [self.arch, ANY_ARCH]}
        if self.dtype:
            conditions["dtype"] = {"$in": [self.dtype]}
        if self.kind:
            conditions["kind"] = {"$eq": self.kind}
        return conditions
