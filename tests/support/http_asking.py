"""An HTTP server in the test's own event loop, and plain requests to it.

Everything is the real thing but the process: gates, limits, uvicorn, sockets. Who wants a process
as well starts `kopt serve --http`.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx2
from mcp.server import MCPServer

from kopt.server.protocol.web.http_app import http_app
from kopt.server.protocol.web.http_connection import Admission
from kopt.server.protocol.web.http_server import QuietServer
from kopt.server.protocol.web.listen_address import HttpOptions, open_doorway
from kopt.server.protocol.web.request_limits import HttpLimits

LIMIT_S = 90.0
"""For everything that happens between the start and the end of one server."""
PING = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
PING_HEADERS = {
    "Accept": "application/json, text/event-stream",
    "Content-Type": "application/json",
    "Mcp-Protocol-Version": "2025-11-25",
}
FREE_PORT = HttpOptions(port=0)


@dataclass(frozen=True)
class Answering:
    """A server that answers."""

    port: int
    http: httpx2.AsyncClient

    @property
    def url(self) -> str:
        """The address that a client is given."""
        return f"http://127.0.0.1:{self.port}/mcp"

    async def ping(self, headers: Mapping[str, str] | None = None) -> httpx2.Response:
        """Send the smallest request of the protocol."""
        return await self.http.post(
            "/mcp", content=PING, headers={**PING_HEADERS, **(headers or {})}
        )


@asynccontextmanager
async def answering(
    server: MCPServer[Any] | None = None,
    options: HttpOptions = FREE_PORT,
    limits: HttpLimits | None = None,
) -> AsyncGenerator[Answering]:
    """Serve `server`, by default one without tools, until the block ends."""
    limits = limits or HttpLimits()
    async with asyncio.timeout(LIMIT_S):
        doorway = open_doorway(options)
        port = doorway.listener.getsockname()[1]
        app = http_app(server or MCPServer("empty"), doorway.access, limits)
        admission = Admission(limits, serves_strangers=doorway.access.tokens is not None)
        http = QuietServer(app, admission)
        serving = asyncio.create_task(http.serve(sockets=[doorway.listener]))
        try:
            base = f"http://127.0.0.1:{port}"
            async with httpx2.AsyncClient(base_url=base, timeout=LIMIT_S) as client:
                yield Answering(port, client)
        finally:
            http.should_exit = True
            await serving
