"""An HTTP connection that is kept or refused at once, and ends when headers do not arrive in time.

uvicorn has a limit for the pause between two requests, but none once a byte of the next came, nor
before the first: a client that sends a byte a minute would hold its connection for ever. And it
closes after a refusal though the request's body is unread, by which the refusal can be lost.
"""

import asyncio
from typing import Any, ClassVar

import h11
from starlette.responses import Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from .admission import Admission, Entry
from .lingering import Lingering
from .turned_away import turn_away

PEER = "kopt.peer"
"""Key of an ASGI scope's state: the `Peer` that the connection was accepted from, or None."""
_UNREAD = (h11.SEND_BODY, h11.ERROR)
"""What a client is at whose request was not read to its end."""


class TimedConnection(H11Protocol):
    """uvicorn's HTTP/1.1 connection with a limit for headers."""

    admission: ClassVar[Admission]
    lingering: ClassVar[Lingering]

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        """Take what uvicorn gives to its connections."""
        super().__init__(*arguments, **keywords)
        self._deadline: asyncio.TimerHandle | None = None
        self._entry: Entry | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        """Wait for the first request, or refuse the connection."""
        entry = self.admission.enter(transport.get_extra_info("socket"))
        if isinstance(entry, Response):
            self.transport = transport
            turn_away(transport, entry)
            return
        self._entry = entry
        self.app_state = {**self.app_state, PEER: entry.peer}
        super().connection_made(transport)
        self._arm()

    def data_received(self, data: bytes) -> None:
        """Take in bytes: of headers unless a request is being answered."""
        before = self.cycle
        if not before or before.response_complete:
            self._arm()
        super().data_received(data)
        if self.cycle is not before:
            self._disarm()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer; linger if the client may still be sending."""
        if exc is None and (self._entry is None or self.conn.their_state in _UNREAD):
            self.lingering.keep(self.transport)
        if self._entry is None:  # it was refused
            return
        self._disarm()
        self.admission.leave(self._entry)
        super().connection_lost(exc)

    def _arm(self) -> None:
        if self._deadline is None:
            seconds = self.admission.limits.header_s
            self._deadline = self.loop.call_later(seconds, self.transport.close)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def timed_connection(admission: Admission, lingering: Lingering) -> type[asyncio.Protocol]:
    """Return `TimedConnection` for the connections that `admission` counts."""
    members = {"admission": admission, "lingering": lingering}
    return type("TimedConnection", (TimedConnection,), members)
