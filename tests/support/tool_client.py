"""An in-memory MCP client of kopt's server, and what its replies say."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from mcp import Client
from mcp.server import MCPServer
from mcp.types import CallToolResult, TextContent

from kopt.config.settings import Settings
from kopt.server.jobs.jobs import Jobs
from kopt.server.protocol.app import build_server
from kopt.server.protocol.serve_options import ServeOptions
from support.scripted_jobs import ScriptedJobs

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


@cache
def _standing_server(
    home: Path = Path("/nowhere"), **fields: Any
) -> tuple[MCPServer[Any], ScriptedJobs]:
    jobs = ScriptedJobs()
    return build_server(serve_options(home, **fields), jobs), jobs


def standing_server(**fields: Any) -> tuple[MCPServer[Any], ScriptedJobs]:
    """Return a server that is made once in a process, and its jobs, of which there are none yet.

    For tests that change nothing else of it; making one takes 70 ms, most of it pydantic's.

    Args:
        fields: Those of `ServeOptions`, and `home`.
    """
    server, jobs = _standing_server(**fields)
    jobs.reset()
    return server, jobs


@asynccontextmanager
async def standing(mode: str = "auto", **fields: Any) -> AsyncGenerator[Client]:
    """Yield a client of its own of the standing server."""
    async with Client(standing_server(**fields)[0], mode=mode) as client:
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
