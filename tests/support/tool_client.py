"""An in-memory MCP client of kopt's server, and what its replies say."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.types import CallToolResult, TextContent

from kopt.config.settings import Settings
from kopt.server.jobs.jobs import Jobs
from kopt.server.protocol.app import build_server
from kopt.server.protocol.serve_options import ServeOptions

KERNEL = "silu_and_mul_b8xh14336"
ERAS = ("auto", "legacy")
"""The protocol of 2026-07-28, and the handshake of those before."""


def serve_options(home: Path, **fields: Any) -> ServeOptions:
    """Return options with the state in `home` and no workspace, unless `fields` say more."""
    return ServeOptions(settings=Settings(home=home), **fields)


@asynccontextmanager
async def connected(
    options: ServeOptions, jobs: Jobs, mode: str = "auto"
) -> AsyncGenerator[Client]:
    """Yield a client of a server of its own."""
    async with Client(build_server(options, jobs), mode=mode) as client:
        yield client


def text_of(reply: CallToolResult) -> str:
    """Return the text of a reply, which is its first block."""
    first = reply.content[0]
    assert isinstance(first, TextContent)
    return first.text


def facts_of(reply: CallToolResult) -> dict[str, Any]:
    """Return the structured content of a reply that is no error."""
    assert not reply.is_error, text_of(reply)
    facts: dict[str, Any] | None = reply.structured_content
    assert facts is not None
    return facts
