"""The bound on a request's body: its size, and the time that it may take to arrive."""

import asyncio

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .http_refusal import refused
from .request_limits import MIB, HttpLimits


class _TooLarge(Exception):
    """More bytes came than are read."""


class _Gone(Exception):
    """The client hung up while it was sending."""


class BodyLimit:
    """Reads the whole body before `app` sees the request."""

    def __init__(self, app: ASGIApp, limits: HttpLimits) -> None:
        """Stand in front of `app`."""
        self._app = app
        self._limits = limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on or refuse one request."""
        try:
            if _declared_bytes(scope) > self._limits.body_bytes:
                raise _TooLarge
            async with asyncio.timeout(self._limits.body_s):
                body = await self._read(receive)
        except _TooLarge:
            allowed = self._limits.body_bytes / MIB
            message = f"kopt: the request is larger than {allowed:g} MiB; send less source at once"
            await refused(413, message)(scope, receive, send)
        except TimeoutError:
            message = f"kopt: the request did not arrive within {self._limits.body_s:g} s"
            await refused(408, message)(scope, receive, send)
        except _Gone:
            return
        else:
            await self._app(scope, _replay(body, receive), send)

    async def _read(self, receive: Receive) -> bytes:
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] != "http.request":
                raise _Gone
            body += message.get("body", b"")
            if len(body) > self._limits.body_bytes:
                raise _TooLarge
            if not message.get("more_body", False):
                return bytes(body)


def _declared_bytes(scope: Scope) -> int:
    text = Headers(scope=scope).get("content-length", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0


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
