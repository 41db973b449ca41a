"""The end of a connection that is not kept: a reply at once, whatever was asked.

It is read for a moment longer, since a connection that is closed with unread bytes is reset, and
the reply could be lost with it. Nothing that comes is looked at.
"""

import asyncio
from http import HTTPStatus

from starlette.responses import Response

_LINGER_S = 1.0
_MOST = 32
"""At a time; beyond them no reply is given."""
_lingering: set["_TurnedAway"] = set()
"""Those that were replied to and are still open, of this process."""


class _TurnedAway(asyncio.Protocol):
    """Drops what comes."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self._timer = asyncio.get_running_loop().call_later(_LINGER_S, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room for another."""
        self._timer.cancel()
        _lingering.discard(self)


def turn_away(transport: asyncio.Transport, reply: Response) -> None:
    """End a connection with `reply`."""
    if len(_lingering) >= _MOST:
        transport.abort()
        return
    protocol = _TurnedAway(transport)
    _lingering.add(protocol)
    transport.set_protocol(protocol)
    transport.write(_written(reply))
    if transport.can_write_eof():
        transport.write_eof()


def _written(reply: Response) -> bytes:
    status = HTTPStatus(reply.status_code)
    head = f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode()
    lines = b"".join(name + b": " + value + b"\r\n" for name, value in reply.raw_headers)
    return head + lines + b"\r\n" + bytes(reply.body)
