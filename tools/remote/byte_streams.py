"""A connected socket as two streams, one to read and one to write: plain or of TLS alike."""

import io
import socket
from typing import BinaryIO, Protocol, cast

from typing_extensions import Buffer

_BUFFER_BYTES = 1 << 16


class ByteSocket(Protocol):
    """What a socket and a `TlsSocket` have in common."""

    def recv(self, count: int, /) -> bytes:
        """Return some bytes that came, at most `count`; none once the other side has ended."""
        ...

    def recv_into(self, target: Buffer, /) -> int:
        """Write some bytes that came to `target`; return how many, 0 once the other side ended."""
        ...

    def sendall(self, data: Buffer, /) -> None:
        """Send all of `data`."""
        ...

    def shutdown(self, how: int, /) -> None:
        """End the connection, also under threads that use it."""
        ...

    def settimeout(self, limit_s: float, /) -> None:
        """Let each wait for the network take no longer than this."""
        ...

    def close(self) -> None:
        """Let go of the connection."""
        ...


class _Reading(io.RawIOBase):
    def __init__(self, connection: ByteSocket) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, target: Buffer, /) -> int:
        # More than a buffer is read at once only where all of it is wanted: one wait for the whole
        # piece, where each part of it would wait for the interpreter's lock among busy threads.
        is_wanted = memoryview(target).nbytes > _BUFFER_BYTES
        if is_wanted and isinstance(self._connection, socket.socket):
            return self._connection.recv_into(target, 0, socket.MSG_WAITALL)
        return self._connection.recv_into(target)


class _Writing(io.RawIOBase):
    def __init__(self, connection: ByteSocket) -> None:
        self._connection = connection

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        self._connection.sendall(data)
        return memoryview(data).nbytes


def streams_of(connection: ByteSocket) -> tuple[BinaryIO, BinaryIO]:
    """Return what reads a connection and what writes to it, each for one thread."""
    source = io.BufferedReader(_Reading(connection), _BUFFER_BYTES)
    target = io.BufferedWriter(_Writing(connection), _BUFFER_BYTES)
    return cast("BinaryIO", source), cast("BinaryIO", target)
