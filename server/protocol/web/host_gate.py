"""The outermost check of a request: does it mean this server, and may its web page call.

Against DNS rebinding: a page in a browser of this machine may resolve its own name to 127.0.0.1,
but it cannot make the browser send another Host than that name.
"""

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .http_access import Access
from .http_refusal import refused


class HostGate:
    """Lets requests through whose Host and Origin headers are allowed."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        """Stand in front of `app`."""
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or refuse one request."""
        reply: ASGIApp | None = None
        if scope["type"] == "http":
            reply = self._refusal(Headers(scope=scope))
        await (reply or self._app)(scope, receive, send)

    def _refusal(self, headers: Headers) -> Response | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if not self._access.allows_host(host):
            return refused(
                421,
                f"kopt does not serve under the name {host[:100]!r}; if it is yours, start the"
                " server with --allowed-host NAME",
            )
        if not self._access.allows_origin(origin):
            return refused(
                403,
                f"the web page {(origin or '')[:100]!r} may not call kopt; if it is yours, start"
                " the server with --allowed-origin URL",
            )
        return None
