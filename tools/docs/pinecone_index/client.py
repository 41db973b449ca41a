"""Clients of Pinecone's SDK, opened and closed. The SDK is imported here and at the first use."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from kopt.config.settings import Settings

if TYPE_CHECKING:
    from pinecone import AsyncIndex, AsyncPinecone, RetryConfig

_SOURCE_TAG = "kopt"


@asynccontextmanager
async def opened_client(
    settings: Settings, retries: "RetryConfig"
) -> AsyncGenerator["AsyncPinecone"]:
    """Open a client of the control plane.

    PINECONE_CONTROLLER_HOST is read by the SDK itself.
    """
    from pinecone import AsyncPinecone

    async with AsyncPinecone(
        api_key=settings.pinecone_api_key, source_tag=_SOURCE_TAG, retry_config=retries
    ) as client:
        yield client


@asynccontextmanager
async def opened_index(
    client: "AsyncPinecone", host: str, retries: "RetryConfig"
) -> AsyncGenerator["AsyncIndex"]:
    """Open a client of the index at `host`."""
    async with await client.index(host=host) as index:
        # The SDK gives its indexes three retries, whatever its client was told, and waits up to a
        # minute before each: the reason of a failure would come long after any deadline.
        http = cast("Any", index)._http
        http._config = replace(http._config, retry_config=retries)
        yield index
