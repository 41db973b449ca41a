"""Limits of HTTP requests (rate, number, size, time), and the reply to one that is refused.

The body of a refusal is a JSON-RPC error, because that is what MCP clients show; a missing token
has the form of OAuth, which they know too. Long work is bounded by the queues of its jobs.
"""

import asyncio
import json
import math
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from mcp.types import INVALID_REQUEST
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kopt.server.protocol.caller import CALLER

MIB = 1024 * 1024
_MAX_KEYS = 4096
_PER_HEADER_LINE = 4
"""Bytes of `: ` and of the line's end."""


@dataclass(frozen=True)
class HttpLimits:
    """The bounds of one server; docs/serving.md has the same numbers."""

    requests_per_s: float = 50.0
    """Sustained rate of one caller."""
    requests_at_once: int = 250
    """Requests of one caller after a pause."""
    open_requests: int = 64
    """Requests of one caller that are unanswered or streaming."""
    body_bytes: int = 4 * MIB
    body_s: float = 20.0
    """Longest time until a request's body is there."""
    header_s: float = 10.0
    """Longest time until a connection has sent the headers of its next request."""
    header_bytes: int = 16 * 1024
    """Size of one request's line and headers."""
    idle_s: float = 15.0
    """Longest pause between two requests of one connection."""
    connections: int = 512
    """Connections in all; a request beyond them is answered with 503."""
    connections_of_one: int = 128
    """Connections of one address, or of one other user of this machine."""
    connections_kept: int = 64
    """Connections that only the server's own user on this machine gets."""
    linger_s: float = 5.0
    """Time to read a refusal, for a client that is still sending its request."""
    linger_bytes: int = 16 * MIB
    """Bytes of such a request that are read and dropped."""
    lingering: int = 64
    """Connections at a time that are closed in this way; beyond them a client may see a reset."""


class RateLimiter:
    """A bucket of permits for each of any number of keys, refilled at a steady rate."""

    def __init__(
        self, per_s: float, at_once: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Refill `per_s` permits a second, up to `at_once`."""
        self._per_s = per_s
        self._at_once = at_once
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        """Permits left, and when that was."""

    def wait_s(self, key: str) -> int:
        """Take a permit of `key`: 0, or the whole seconds after which there is one again."""
        now = self._clock()
        left, then = self._buckets.pop(key, (float(self._at_once), now))
        left = min(self._at_once, left + (now - then) * self._per_s)
        granted = left >= 1
        self._buckets[key] = (left - 1 if granted else left, now)
        if len(self._buckets) > _MAX_KEYS:  # the first is the one not seen for longest
            del self._buckets[next(iter(self._buckets))]
        return 0 if granted else max(1, math.ceil((1 - left) / self._per_s))


class CallerLimits:
    """Lets requests through as long as their caller keeps within the limits."""

    def __init__(self, app: ASGIApp, limits: HttpLimits) -> None:
        """Stand in front of `app`, behind what finds out the caller."""
        self._app = app
        self._open_limit = limits.open_requests
        self._rate = RateLimiter(limits.requests_per_s, limits.requests_at_once)
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


class _TooLarge(Exception):
    """More bytes came than are read."""


class BodyLimit:
    """Reads the whole body, in size and time, before `app` sees the request."""

    def __init__(self, app: ASGIApp, limits: HttpLimits) -> None:
        """Stand in front of `app`."""
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or refuse one request; a client that hangs up meanwhile is asked no more."""
        limits = self._limits
        try:
            async with asyncio.timeout(limits.body_s):
                body = await self._read(scope, receive)
        except _TooLarge:
            allowed = limits.body_bytes / MIB
            message = f"kopt: the request is larger than {allowed:g} MiB; send less source at once"
            await refused(413, message)(scope, receive, send)
        except TimeoutError:
            message = f"kopt: the request did not arrive within {limits.body_s:g} s"
            await refused(408, message)(scope, receive, send)
        else:
            if body is not None:
                await self._app(scope, _replay(body, receive), send)

    async def _read(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the body; None if the client hung up before its end."""
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and len(declared) < 20 and int(declared) > self._limits.body_bytes:
            raise _TooLarge
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return None
            body += message.get("body", b"")
            if len(body) > self._limits.body_bytes:
                raise _TooLarge
            if not message.get("more_body", False):
                return bytes(body)


def header_bytes(scope: Scope) -> int:
    """Return the size of a request's line and headers.

    uvicorn bounds only what is still incomplete: headers that come at once are complete, at any
    size, when it first sees them.
    """
    lines = sum(len(name) + len(value) + _PER_HEADER_LINE for name, value in scope["headers"])
    return lines + len(scope.get("raw_path") or b"") + len(scope["query_string"])


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return a receive that gives `body` once, then what the connection gives."""
    is_read = False

    async def replay() -> Message:
        nonlocal is_read
        if is_read:
            return await receive()
        is_read = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


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
