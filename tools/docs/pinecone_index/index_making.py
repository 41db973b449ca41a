"""The index that an upload goes to: found, made if that was asked for, and waited for."""

from typing import TYPE_CHECKING

from kopt.config.errors import BackendUnavailable
from kopt.config.settings import Settings

from .index_shape import EMBEDDING_MODEL, TEXT_FIELD, IndexShape, find_index
from .pacing import Pacing, until
from .push_records import PushRequest

if TYPE_CHECKING:
    from pinecone import AsyncPinecone

_READY_S = 300.0


async def ready_index(
    client: "AsyncPinecone", request: PushRequest, settings: Settings, pacing: Pacing
) -> tuple[IndexShape, bool]:
    """Return the index of the settings once it is ready, and whether it was made.

    With PINECONE_INDEX_HOST there is an index, and none is made.

    Raises:
        BackendUnavailable: It does not become ready, or embeds no text.
        PineconeError: It is not there and was not to be made, or a request failed.
    """
    from pinecone.errors import NotFoundError

    if settings.pinecone_index_host:
        return await find_index(client, settings), False
    created = False
    try:
        await client.indexes.describe(settings.pinecone_index_name)
    except NotFoundError:
        if not request.create:
            raise
        created = await _make(client, request, settings)
    if not await until(lambda: _is_ready(client, settings), _READY_S, pacing):
        raise BackendUnavailable(
            f"Pinecone's index {settings.pinecone_index_name} is not ready after"
            f" {_READY_S:.0f} s: run it again later"
        )
    return await find_index(client, settings), created


async def _make(client: "AsyncPinecone", request: PushRequest, settings: Settings) -> bool:
    """Make an index of the records API; say whether it was us and not another process."""
    from pinecone.errors import ConflictError

    try:
        await client.indexes.create_for_model(
            name=settings.pinecone_index_name,
            cloud=request.cloud,
            region=request.region,
            embed={
                "model": EMBEDDING_MODEL,
                "metric": "cosine",
                "field_map": {"text": TEXT_FIELD},
                "read_parameters": {"input_type": "query", "truncate": "END"},
                "write_parameters": {"input_type": "passage", "truncate": "END"},
            },
            tags={"made-by": "kopt"},
            timeout=-1,  # it is waited for here, where waiting can be seen and ended
        )
    except ConflictError:
        return False
    return True


async def _is_ready(client: "AsyncPinecone", settings: Settings) -> bool:
    model = await client.indexes.describe(settings.pinecone_index_name)
    return model.status.ready
