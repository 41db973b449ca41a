"""How much one caller may ask of the server at once, and how fast.

Long work is bounded elsewhere: its jobs wait in a queue per device, in turns over the callers.
"""

from collections import Counter
from dataclasses import dataclass

from starlette.types import ASGIApp, Receive, Scope, Send

from kopt.server.protocol.caller import CALLER

from .http_refusal import refused_for_now
from .rate_limit import RateLimit

MIB = 1024 * 1024


@dataclass(frozen=True)
class HttpLimits:
    """The bounds of one server; docs/serving.md has the same numbers."""

    requests_per_s: float = 50.0
    """Per caller, sustained."""
    requests_at_once: int = 250
    """Per caller, after a pause."""
    open_requests: int = 64
    """Per caller, unanswered or streaming."""
    body_bytes: int = 4 * MIB
    body_s: float = 20.0
    """Until a request's body is there."""
    header_s: float = 10.0
    """Until a connection has sent the headers of its next request."""
    header_bytes: int = 16 * 1024
    """Of one request, its line and all its headers."""
    connections: int = 512
    """In all; a request beyond them is answered with 503."""
    connections_of_one: int = 128
    """Of one address, or of one other user of this machine."""
    connections_kept: int = 64
    """Of all, those that only the server's own user on this machine gets."""
    linger_s: float = 5.0
    """After a refusal of a request that was not read to its end: for the client to read it."""
    linger_bytes: int = 16 * MIB
    """Of what such a client still sends, all dropped."""
    lingering: int = 64
    """Such connections at a time, beside the others; beyond them a client may see a reset."""


class RequestLimits:
    """Lets requests through as long as their caller keeps within the limits."""

    def __init__(self, app: ASGIApp, limits: HttpLimits) -> None:
        """Stand in front of `app`, behind what finds out the caller."""
        self._app = app
        self._open_limit = limits.open_requests
        self._rate = RateLimit(limits.requests_per_s, limits.requests_at_once)
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or refuse one request."""
        caller: str = scope[CALLER]
        if wait_s := self._rate.wait_s(caller):
            message = f"kopt: too many requests; try again in {wait_s} s"
            await refused_for_now(message, wait_s)(scope, receive, send)
            return
        if self._open[caller] >= self._open_limit:
            message = (
                f"kopt: {self._open_limit} requests are open already; wait for one of them, or ask"
                " again later for a job by job_wait"
            )
            await refused_for_now(message, 1)(scope, receive, send)
            return
        self._open[caller] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._open[caller] -= 1
            if not self._open[caller]:
                del self._open[caller]
