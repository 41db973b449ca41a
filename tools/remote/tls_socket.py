"""TLS over a socket for two threads: one reads while the other writes.

Python's own `SSLSocket` must not be used by two threads at once before Python 3.13. Here OpenSSL
works on memory, under a lock, and only bytes that are encrypted already wait for the network.
"""

import socket
import ssl
import threading

from typing_extensions import Buffer

_CHUNK_BYTES = 1 << 16


class TlsSocket:
    """Implements `ByteSocket` over an encrypted connection."""

    def __init__(
        self, plain: socket.socket, context: ssl.SSLContext, server_name: str | None
    ) -> None:
        """Take over a connection and agree on its encryption.

        Args:
            plain: Connected, with a time limit.
            context: Of this side.
            server_name: The name that the other side must prove; None: this side is the server.

        Raises:
            OSError: The connection ended, or nothing was agreed on (`ssl.SSLError`).
        """
        self._plain = plain
        self._came, self._goes = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._came,
            self._goes,
            server_side=server_name is None,
            server_hostname=server_name,
        )
        self._state = threading.Lock()  # of the three above
        self._sending = threading.Lock()  # keeps what is encrypted in order
        self._shake_hands()

    def recv(self, count: int, /) -> bytes:
        """Return some bytes that came; none once the other side has ended."""
        while True:
            with self._state:
                data = self._decrypted(count)
            if data is not None:
                return data
            self._feed()

    def recv_into(self, target: Buffer, /) -> int:
        """Write some bytes that came to `target`; return how many."""
        view = memoryview(target).cast("B")
        data = self.recv(len(view))
        view[: len(data)] = data
        return len(data)

    def sendall(self, data: Buffer, /) -> None:
        """Send all of `data`."""
        view = memoryview(data).cast("B")
        for start in range(0, len(view), _CHUNK_BYTES):
            with self._sending:
                with self._state:
                    self._tls.write(view[start : start + _CHUNK_BYTES])
                    encrypted = self._goes.read()
                self._plain.sendall(encrypted)

    def shutdown(self, how: int, /) -> None:
        """End the connection, also under threads that use it."""
        self._plain.shutdown(how)

    def settimeout(self, limit_s: float, /) -> None:
        """Let each wait for the network take no longer than this."""
        self._plain.settimeout(limit_s)

    def close(self) -> None:
        """Let go of the connection."""
        self._plain.close()

    def _shake_hands(self) -> None:
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._plain.sendall(self._goes.read())
                self._feed()
                continue
            except ssl.SSLError:
                self._plain.sendall(self._goes.read())  # why, for the other side
                raise
            self._plain.sendall(self._goes.read())
            return

    def _decrypted(self, count: int) -> bytes | None:
        """Return what has come; None if more is needed first."""
        try:
            return self._tls.read(count)
        except ssl.SSLWantReadError:
            # What OpenSSL answers by itself, a change of keys, goes with what is sent next: to wait
            # for the sending end here could be a deadlock of both sides.
            return None
        except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
            return b""

    def _feed(self) -> None:
        raw = self._plain.recv(_CHUNK_BYTES)
        with self._state:
            if raw:
                self._came.write(raw)
            else:
                self._came.write_eof()
