"""The server as one ASGI application: what stands between the network and the tools, in order.

The headers' size, host and origin, CORS for named pages, the path; then for /mcp the token or the
user, the limits of the caller, the body's size, and the SDK. The caller is the holder of a bearer
token, or a process of the server's own user.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from mcp.server import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Scope

from kopt.server.protocol.caller import CALLER, LOCAL, Caller

from .http_connection import connection_of
from .listen_address import PATH, Access
from .local_peer import process_of
from .request_limits import (
    BodyLimit,
    CallerLimits,
    Check,
    Checked,
    HttpLimits,
    RateLimiter,
    header_bytes,
    refused,
    refused_for_now,
    unauthorized,
)
from .token_file import Tokens

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


def allowed_headers(access: Access, limits: HttpLimits) -> Check:
    """Return the check of every request: the size of its headers, its Host, its Origin.

    Against DNS rebinding: a page in a browser of this machine may resolve its own name to
    127.0.0.1, but it cannot make the browser send another Host than that name.
    """

    async def check(scope: Scope) -> Response | None:
        if header_bytes(scope) > limits.header_bytes:
            return refused(400, f"kopt: the headers are larger than {limits.header_bytes} bytes")
        headers = Headers(scope=scope)
        host, origin = headers.get("host", ""), headers.get("origin")
        if not access.allows_host(host):
            return refused(
                421,
                f"kopt does not serve under the name {host[:100]!r}; if it is yours, start the"
                " server with --allowed-host NAME",
            )
        if not access.allows_origin(origin):
            return refused(
                403,
                f"the web page {(origin or '')[:100]!r} may not call kopt; if it is yours, start"
                " the server with --allowed-origin URL",
            )
        return None

    return check


_FAILURES_PER_S = 1.0
_FAILURES_AT_ONCE = 20
_MAX_KNOWN_PROCESSES = 1024


def token_callers(tokens: Tokens) -> Check:
    """Return the check of a bearer token: whose it is becomes the caller."""
    failures = RateLimiter(_FAILURES_PER_S, _FAILURES_AT_ONCE)

    async def check(scope: Scope) -> Response | None:
        given = Headers(scope=scope).getlist("authorization")
        scheme, _, token = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        holder = tokens.holder(token.strip().encode("latin-1"))
        if scheme.lower() == "bearer" and holder is not None:
            scope[CALLER] = holder
            return None
        client = scope.get("client")
        if wait_s := failures.wait_s(client[0] if client else ""):
            return refused_for_now("kopt: too many requests without a valid token", wait_s)
        return unauthorized(
            "kopt: send 'Authorization: Bearer TOKEN' with a token out of the file that the"
            f" server was started with (--token-file); {_token_fault(given, scheme)}"
        )

    return check


def local_callers() -> Check:
    """Return the check of a server without tokens: only processes of its own user may call.

    Each process is a caller of its own, so that several agents of one user share GPUs fairly. The
    end of an SSH tunnel counts as its user's process. A request is refused of which it was not
    found out, when the connection was accepted, who is at its other end.
    """
    callers: dict[int, Caller] = {}  # by the socket's inode: finding a process takes milliseconds

    async def check(scope: Scope) -> Response | None:
        connection = connection_of(scope)
        peer = None if connection is None else connection.peer
        if peer is None or not peer.is_own:
            return refused(403, "kopt cannot tell whose process this is; it serves its own user's")
        if peer.inode not in callers:
            if len(callers) >= _MAX_KNOWN_PROCESSES:
                del callers[next(iter(callers))]
            pid = await asyncio.to_thread(process_of, peer.inode)
            callers[peer.inode] = Caller(LOCAL if pid is None else f"{LOCAL}-{pid}")
        scope[CALLER] = callers[peer.inode]
        return None

    return check


def _token_fault(given: list[str], scheme: str) -> str:
    if not given:
        return "no Authorization header came"
    if len(given) > 1:
        return "more than one Authorization header came"
    return "this token is not in it" if scheme.lower() == "bearer" else "the scheme is not Bearer"
