"""The server as one ASGI application: what stands between the network and the tools, in order.

The headers' size, host and origin, CORS for named pages, the path; then for /mcp the token or the
user, the limits of the caller, the body's size, and the SDK.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from .caller_check import local_callers, token_callers
from .header_check import allowed_headers
from .http_refusal import Checked
from .listen_address import PATH, Access
from .request_limits import BodyLimit, CallerLimits, HttpLimits

_PAGE_HEADERS = (
    "Authorization",
    "Content-Type",
    "Mcp-Method",
    "Mcp-Name",
    "Mcp-Protocol-Version",
)


def http_app(server: MCPServer, access: Access, limits: HttpLimits) -> ASGIApp:
    """Return `server` as an application for requests that `access` lets in.

    Without sessions: each request stands alone, so a client goes on after the server was restarted.
    """
    protocol = server.streamable_http_app(
        streamable_http_path=PATH,
        stateless_http=True,
        max_request_body_size=limits.body_bytes,
        # `Access` has checked both headers, for every path and by stricter rules.
        transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
    )
    find_caller = local_callers() if access.tokens is None else token_callers(access.tokens)
    guarded = Checked(CallerLimits(BodyLimit(protocol, limits), limits), find_caller)
    # No GET: in a server without sessions nothing is ever sent on that stream.
    routes = [
        Route("/healthz", _healthz, methods=["GET"]),
        Route(PATH, guarded, methods=["POST"]),
    ]

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with protocol.router.lifespan_context(protocol):
            yield

    app: ASGIApp = Starlette(routes=routes, lifespan=lifespan)
    if access.pages:
        app = CORSMiddleware(
            app, allow_origins=access.pages, allow_methods=["POST"], allow_headers=_PAGE_HEADERS
        )
    return Checked(app, allowed_headers(access, limits))


async def _healthz(_: Request) -> JSONResponse:
    """Say that requests are answered, and nothing else: no token is asked for here."""
    return JSONResponse({"status": "ok"})
