"""What every HTTP request must have: small headers, a known Host, an allowed Origin."""

from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import Scope

from .http_refusal import Check, refused
from .listen_address import Access
from .request_limits import HttpLimits, header_bytes


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
