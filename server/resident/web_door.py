"""The port by which callers of other machines come to a resident evaluator: HTTP, then frames.

Whoever has a token may run code here, in the sandbox, as over `kopt serve --http`: the same rules
of hosts, pages and tokens hold (docs/serving.md).
"""

import json
import socket
import ssl
from typing import NamedTuple

import h11

from kopt.server.protocol.web.listen_address import Doorway
from kopt.server.protocol.web.local_peer import peer_of, process_of
from kopt.server.protocol.web.request_limits import RateLimiter
from kopt.tools.remote.byte_streams import ByteSocket
from kopt.tools.remote.code_bundle import code_bundle
from kopt.tools.remote.tls_socket import TlsSocket
from kopt.tools.remote.web_upgrade import CODE_HEADER, PROTOCOL, http_events

from .evaluator import Guest, ResidentEvaluator

_FAILURES_PER_S = 1.0
_FAILURES_AT_ONCE = 20


class _Refusal(NamedTuple):
    status: int
    message: str


class WebDoor:
    """Implements `evaluator.Door` on a port."""

    def __init__(self, doorway: Doorway, device: str, certificates: ssl.SSLContext | None) -> None:
        """Take over a socket that listens.

        Args:
            doorway: The socket, and who may come in.
            device: The GPU behind it.
            certificates: How to encrypt; None: a proxy on this machine does it, or a tunnel.
        """
        self._doorway, self._device, self._certificates = doorway, device, certificates
        self._failures = RateLimiter(_FAILURES_PER_S, _FAILURES_AT_ONCE)

    @property
    def listener(self) -> socket.socket:
        """Accepts connections."""
        return self._doorway.listener

    def meet(self, connection: socket.socket, evaluator: ResidentEvaluator) -> Guest | None:
        """Read one request, and return whose it is or say why nobody is served.

        Raises:
            OSError: The connection broke.
            h11.ProtocolError: It is no HTTP.
        """
        del evaluator
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        address: str = connection.getpeername()[0]
        words = self._local_words(connection)
        context = self._certificates
        spoken: ByteSocket = connection
        if context is not None:
            spoken = TlsSocket(connection, context, None)
        machine = h11.Connection(h11.SERVER)
        request = _request(spoken, machine)
        if request is None:
            return None
        headers = {name.decode(): value.decode("latin-1") for name, value in request.headers}
        refusal = self._refusal(request.target.decode("latin-1"), headers)
        if refusal is None:
            refusal = self._stranger(headers, address, words)
        if refusal is None and headers.get(CODE_HEADER) != code_bundle().digest:
            refusal = _Refusal(
                409, "this kopt is another than the caller's: install the same version on both"
            )
        if refusal is not None:
            _refuse(spoken, machine, refusal)
            return None
        ending = _Refusal(503, "the evaluator is being stopped")
        return Guest(
            spoken,
            words or f"{self._holder(headers)} at {address}",
            welcome=lambda: _agree(spoken, machine),
            refuse=lambda: _refuse(spoken, machine, ending),
        )

    def retire(self) -> None:
        """Keep the port, on which callers are told that the evaluator is being stopped."""

    def close(self) -> None:
        """Listen no longer."""
        self._doorway.listener.close()

    def _refusal(self, target: str, headers: dict[str, str]) -> _Refusal | None:
        """Return what is wrong with a request, whoever sends it."""
        access = self._doorway.access
        host = headers.get("host", "")
        if not access.allows_host(host):
            return _Refusal(
                421,
                f"this evaluator is not called {host[:100]!r}; if it is, start it with"
                " --allowed-host NAME",
            )
        if "origin" in headers:
            return _Refusal(403, "no web page may call an evaluator")
        if headers.get("upgrade", "").lower() != PROTOCOL:
            return _Refusal(426, "this is a resident evaluator of kopt: call it by --device")
        if target != f"/{self._device}":
            return _Refusal(404, f"the GPU here is {self._device}, not {target[1:100]}")
        return None

    def _stranger(self, headers: dict[str, str], address: str, words: str) -> _Refusal | None:
        """Return why the caller is not let in."""
        if self._doorway.access.tokens is None:
            return None if words else _Refusal(403, "only processes of the server's own user")
        if self._holder(headers) is not None:
            return None
        if wait_s := self._failures.wait_s(address):
            return _Refusal(429, f"too many wrong tokens; try again in {wait_s} s")
        return _Refusal(
            401,
            "no valid token came: KOPT_DEVICE_TOKEN_FILE names a file with one of those in the"
            " server's --token-file",
        )

    def _holder(self, headers: dict[str, str]) -> str | None:
        """Return whose token came."""
        tokens = self._doorway.access.tokens
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if tokens is None or scheme.lower() != "bearer":
            return None
        holder = tokens.holder(token.strip().encode("latin-1"))
        return None if holder is None else holder.name

    def _local_words(self, connection: socket.socket) -> str:
        """Return the process of this user at the other end, where no token is asked for."""
        if self._doorway.access.tokens is not None:
            return ""
        peer = peer_of(connection)
        if peer is None or not peer.is_own:
            return ""
        process = process_of(peer.inode)
        return "a process of this user" if process is None else f"process {process}"


def _request(connection: ByteSocket, machine: h11.Connection) -> h11.Request | None:
    """Return what is asked; None if the connection ends first."""
    request: h11.Request | None = None
    for event in http_events(connection, machine):
        if isinstance(event, h11.Request):
            request = event
        elif isinstance(event, h11.EndOfMessage):
            return request
        elif isinstance(event, h11.ConnectionClosed):
            break
    return None


def _agree(connection: ByteSocket, machine: h11.Connection) -> None:
    headers = [("connection", "upgrade"), ("upgrade", PROTOCOL)]
    connection.sendall(machine.send(h11.InformationalResponse(status_code=101, headers=headers)))


def _refuse(connection: ByteSocket, machine: h11.Connection, refusal: _Refusal) -> None:
    body = json.dumps({"error": {"message": refusal.message}}).encode()
    headers = [
        ("content-type", "application/json"),
        ("content-length", str(len(body))),
        ("connection", "close"),
    ]
    parts = (
        machine.send(h11.Response(status_code=refusal.status, headers=headers)),
        machine.send(h11.Data(data=body)),
        machine.send(h11.EndOfMessage()),
    )
    connection.sendall(b"".join(part for part in parts if part))
