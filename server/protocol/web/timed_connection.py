"""An HTTP connection that ends when a request's headers do not arrive in time.

uvicorn has a limit for the pause between two requests, but none once a byte of the next came, nor
before the first: a client that sends a byte a minute would hold its connection for ever.
"""

import asyncio
from typing import Any, ClassVar

from uvicorn.protocols.http.h11_impl import H11Protocol


class TimedConnection(H11Protocol):
    """uvicorn's HTTP/1.1 connection with a limit for headers."""

    header_s: ClassVar[float] = 10.0

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        """Take what uvicorn gives to its connections."""
        super().__init__(*arguments, **keywords)
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as uvicorn's own
        """Wait for the first request."""
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
        """Wait no longer."""
        self._disarm()
        super().connection_lost(exc)

    def _arm(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self.header_s, self.transport.close)

    def _disarm(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def timed_connection(header_s: float) -> type[asyncio.Protocol]:
    """Return `TimedConnection` with a limit of `header_s` seconds."""
    return type("TimedConnection", (TimedConnection,), {"header_s": header_s})
