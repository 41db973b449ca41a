"""The reply to an HTTP request that never reaches the tools: status, reason, what to do.

The body is a JSON-RPC error, because that is what MCP clients show; a missing token has the form
of OAuth, which they know too.
"""

import json
from collections.abc import Mapping
from http import HTTPStatus

from mcp.types import INVALID_REQUEST
from starlette.responses import Response


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
