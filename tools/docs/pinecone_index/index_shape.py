"""Which kind of index there is, and where: told by what it says about itself.

Two kinds embed text by themselves. The records API is the older one, with a field of semantic
text; a document index has a string field with a model. Anything else cannot be asked with text.
"""

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kopt.config.errors import BackendUnavailable
from kopt.config.settings import Settings

if TYPE_CHECKING:
    from pinecone import AsyncPinecone, IndexModel

TEXT_FIELD = "chunk_text"
"""Of the indexes that kopt creates."""
EMBEDDING_MODEL = "multilingual-e5-large"
MOST_RECORDS = {"records": 96, "documents": 50}
"""In one request: the limit of the records API, and what the SDK takes for documents."""
_LISTING_S = 1.0
"""For asking what kind of index the host of the settings is."""


@dataclass(frozen=True)
class IndexShape:
    """How one index is written and asked."""

    kind: Literal["records", "documents"]
    host: str
    text_field: str
    """The one that is embedded."""


async def find_index(client: "AsyncPinecone", settings: Settings) -> IndexShape:
    """Return the shape of the index of the settings.

    With a host it is looked up among the project's indexes. Where these cannot be asked for (keys
    and firewalls may allow the index alone), it is taken for one that kopt has created.

    Raises:
        BackendUnavailable: It is not ready, or embeds no text.
        PineconeError: It is not there, or cannot be asked about.
    """
    from pinecone.errors import PineconeError

    host = settings.pinecone_index_host
    if host is None:
        return shape_of(await client.indexes.describe(settings.pinecone_index_name))
    try:
        async with asyncio.timeout(_LISTING_S):
            models = [model async for model in client.indexes.list()]
    except (PineconeError, TimeoutError):
        models = []
    for model in models:
        if _bare(model.host or "") == _bare(host):
            return shape_of(model)
    return IndexShape("records", host, TEXT_FIELD)


def shape_of(model: "IndexModel") -> IndexShape:
    """Return the shape of a described index.

    Raises:
        BackendUnavailable: It is not ready, or embeds no text.
    """
    from pinecone.models.indexes.schema import SemanticTextField, StringField

    if not model.status.ready or not model.host:
        raise BackendUnavailable(
            f"Pinecone's index {model.name} is not ready ({model.status.state}): try again soon"
        )
    for name, field in model.schema.fields.items():
        if isinstance(field, SemanticTextField):
            return IndexShape("records", model.host, name)
        if isinstance(field, StringField) and field.embed is not None:
            return IndexShape("documents", model.host, name)
    raise BackendUnavailable(
        f"Pinecone's index {model.name} embeds no text: name another with PINECONE_INDEX_NAME and"
        " create it with `kopt docs push --create`"
    )


def _bare(host: str) -> str:
    return host.split("://")[-1].rstrip("/").lower()
