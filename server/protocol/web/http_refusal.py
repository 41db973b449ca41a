"""The reply to an HTTP request that never reaches the tools: status, reason, what to do.

The body is a JSON-RPC error, because that is what MCP clients show; a missing token has the form
of OAuth, which they know too.
"""

import json
from collections.abc import Mapping

from mcp.types import INVALID_REQUEST
from starlette.responses import Response


def refused(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    """Return a refusal; the connection ends with it, since the body may be unread."""
    error = {"code": INVALID_REQUEST, "message": message}
    return _json(status, {"jsonrpc": "2.0", "id": None, "error": error}, headers or {})


def refused_for_now(message: str, retry_after_s: int) -> Response:
    """Return a refusal that ends by itself: 429 with the seconds to wait."""
    return refused(429, message, {"Retry-After": str(retry_after_s)})


def unauthorized(message: str) -> Response:
    """Return a 401; Claude Code shows `error_description` as it is."""
    body = {"error": "unauthorized", "error_description": message}
    return _json(401, body, {"WWW-Authenticate": 'Bearer realm="kopt"'})


def _json(status: int, body: Mapping[str, object], headers: dict[str, str]) -> Response:
    return Response(
        json.dumps(body),
        status_code=status,
        media_type="application/json",
        headers={"Connection": "close", "Cache-Control": "no-store", **headers},
    )
