"""A connected socket as what carries a connection: of a port, or of this machine."""

import socket
from contextlib import suppress
from typing import BinaryIO

from .byte_streams import ByteSocket, streams_of


class SocketCarrier:
    """Implements `link.Carrier` on a socket, on which frames go from now on."""

    def __init__(self, connection: ByteSocket, ending: str) -> None:
        """Take over a connection; `ending` says what to look at when it has ended."""
        self._connection = connection
        self._ending = ending
        self._source, self._target = streams_of(connection)

    @property
    def source(self) -> BinaryIO:
        """What comes from the other side."""
        return self._source

    @property
    def target(self) -> BinaryIO:
        """What goes to the other side."""
        return self._target

    def end(self) -> None:
        """Close the connection, also in the middle of a frame."""
        with suppress(OSError):  # the other side has
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    def why_ended(self) -> str:
        """Return what to look at."""
        return self._ending
