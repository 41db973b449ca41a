"""The last moments of a connection whose client may still be sending.

A connection that is closed with bytes unread, or to which bytes come after its close, is reset, and
the reply can be lost with it. So the client is told that nothing more will be said, and what it
still sends is dropped until it hangs up, or long enough.
"""

import asyncio
import contextlib
import socket
from collections.abc import Callable

from .request_limits import HttpLimits

_PIECE_BYTES = 64 * 1024


class Lingering:
    """The connections of one server that have had their reply and are still open."""

    def __init__(self, limits: HttpLimits) -> None:
        """Keep within `limits`."""
        self._limits = limits
        self._open: set[_Rest] = set()

    def keep(self, transport: asyncio.Transport) -> None:
        """Take over the connection of `transport`, which says that it is lost and then closes.

        Beyond the limits it is left to close at once.
        """
        if len(self._open) >= self._limits.lingering:
            return
        with contextlib.suppress(OSError):  # it is gone already, or there is no descriptor left
            # The transport closes its own descriptor; a second one keeps the connection.
            connection: socket.socket = transport.get_extra_info("socket").dup()
            self._open.add(_Rest(connection, self._limits, self._open.discard))

    def end(self) -> None:
        """Close all of them."""
        for rest in list(self._open):
            rest.end()


class _Rest:
    """What one client still sends."""

    def __init__(
        self, connection: socket.socket, limits: HttpLimits, on_end: "Callable[[_Rest], None]"
    ) -> None:
        self._connection = connection
        self._left_bytes = limits.linger_bytes
        self._on_end = on_end
        try:
            connection.shutdown(socket.SHUT_WR)
        except OSError:
            connection.close()
            raise
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(connection, self._drop)
        self._timer = self._loop.call_later(limits.linger_s, self.end)

    def end(self) -> None:
        """Close the connection."""
        self._timer.cancel()
        self._loop.remove_reader(self._connection)
        self._connection.close()
        self._on_end(self)

    def _drop(self) -> None:
        try:
            size = len(self._connection.recv(_PIECE_BYTES))
        except BlockingIOError:
            return
        except OSError:
            size = 0
        self._left_bytes -= size
        if not size or self._left_bytes < 0:
            self.end()
