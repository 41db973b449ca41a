"""The bound on a request's headers, whether they arrive in one piece or in many.

The HTTP parser bounds only what is still incomplete: headers that come at once are complete, at any
size, when it first sees them.
"""

from starlette.types import ASGIApp, Receive, Scope, Send

from .http_refusal import refused
from .request_limits import HttpLimits

_PER_LINE = 4
"""Bytes of `: ` and of the line's end."""


class HeaderLimit:
    """Lets requests through whose request line and headers are within the limit."""

    def __init__(self, app: ASGIApp, limits: HttpLimits) -> None:
        """Stand in front of `app`."""
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or refuse one request."""
        if scope["type"] == "http" and _size_bytes(scope) > self._limits.header_bytes:
            message = f"kopt: the headers are larger than {self._limits.header_bytes} bytes"
            await refused(400, message)(scope, receive, send)
            return
        await self._app(scope, receive, send)


def _size_bytes(scope: Scope) -> int:
    lines = sum(len(name) + len(value) + _PER_LINE for name, value in scope["headers"])
    return lines + len(scope.get("raw_path") or b"") + len(scope["query_string"])
