"""Checks of HTTP requests, and the reply to one that never reaches the tools.

The reply has a status, the reason and what to do. Its body is a JSON-RPC error, because that is
what MCP clients show; a missing token has the form of OAuth, which they know too.
"""

import json
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

from mcp.types import INVALID_REQUEST
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

Check = Callable[[Scope], Awaitable[Response | None]]
"""Returns the refusal of a request, or None; may note in its scope who the caller is."""


class Checked:
    """Lets requests through that a check has nothing against."""

    def __init__(self, app: ASGIApp, check: Check) -> None:
        """Stand in front of `app`."""
        self._app = app
        self._check = check

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or refuse one request."""
        refusal = await self._check(scope) if scope["type"] == "http" else None
        await (refusal or self._app)(scope, receive, send)


def refused(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """Return a refusal; the connection ends with it, since the body may be unread."""
    error = {"code": INVALID_REQUEST, "message": message}
    return _json(status, {"jsonrpc": "2.0", "id": None, "error": error}, headers or {})


def refused_for_now(message: str, retry_after_s: int) -> Response:
    """Return a 429 with the seconds to wait."""
    return refused(429, message, {"Retry-After": str(retry_after_s)})


def unauthorized(message: str) -> Response:
    """Return a 401; Claude Code shows `error_description` as it is."""
    body = {"error": "unauthorized", "error_description": message}
    return _json(401, body, {"WWW-Authenticate": 'Bearer realm="kopt"'})


def on_the_wire(reply: Response) -> bytes:
    """Return `reply` as HTTP/1.1 sends it, for a connection whose request is not read."""
    status = HTTPStatus(reply.status_code)
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in reply.raw_headers)
    return head + lines + b"\r\n" + bytes(reply.body)


def _json(status: int, body: Mapping[str, object], headers: dict[str, str]) -> Response:
    return Response(
        json.dumps(body),
        status_code=status,
        media_type="application/json",
        headers={"Connection": "close", "Cache-Control": "no-store", **headers},
    )
