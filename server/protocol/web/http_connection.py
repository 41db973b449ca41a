"""An HTTP connection that is kept or refused at accept, ends in time, and closes without a reset.

uvicorn has a limit for the pause between two requests, but none before the first request or once a
byte of the next came: a client that sends a byte a minute would hold its connection for ever. And a
connection that is closed with bytes unread, or to which bytes come after its close, is reset, by
which a refusal can be lost. So the client is told that nothing more will be said, and what it still
sends is dropped until it hangs up, or long enough. Who is let in is decided at accept: only then is
the other end of a loopback connection sure to be there.
"""

import asyncio
import contextlib
import ipaddress
import os
import socket
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from .local_peer import Peer, peer_of
from .request_limits import HttpLimits, on_the_wire, refused

_UNKNOWN = (
    "kopt cannot tell whose process this is, and serves its own user's alone; try again, or start"
    " the server with --token-file"
)
_UNAVAILABLE = "kopt: too many connections are open; close some, or try again later"


@dataclass(frozen=True)
class Admitted:
    """A connection that is kept."""

    peer: Peer | None
    """The process at its other end; None: another machine."""
    counted_as: str | None
    """The user or address it counts for; None: the server's own user, who is never crowded out."""


class Admission:
    """The connections of one server, counted."""

    def __init__(self, limits: HttpLimits, serves_strangers: bool) -> None:
        """Keep within `limits`; without `serves_strangers` only the server's user comes in."""
        self.limits = limits
        self._serves_strangers = serves_strangers
        self._held: Counter[str] = Counter()

    def enter(self, connection: socket.socket) -> Admitted | Response:
        """Return the accepted `connection` as one that is kept, or the refusal."""
        try:
            address = _address(connection)
        except OSError:  # reset already
            return refused(403, _UNKNOWN)
        peer = peer_of(connection) if address.is_loopback else None
        if peer is not None and peer.is_own:
            return Admitted(peer, None)
        if not self._serves_strangers:
            return refused(403, _foreign() if peer is not None and peer.inode else _UNKNOWN)
        stranger = _stranger(address, peer)
        if (
            self._held[stranger] >= self.limits.connections_of_one
            or self._held.total() >= self.limits.connections - self.limits.connections_kept
        ):
            return refused(503, _UNAVAILABLE)
        self._held[stranger] += 1
        return Admitted(peer, stranger)

    def leave(self, admitted: Admitted) -> None:
        """Count a connection no longer."""
        if admitted.counted_as is not None:
            self._held[admitted.counted_as] -= 1
            self._held += Counter()  # drops what counts none


def _foreign() -> str:
    return (
        f"kopt serves the user with the id {os.geteuid()} on this machine and no other; with"
        " --token-file it serves whoever has a token"
    )


def _address(connection: socket.socket) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    text: str = connection.getpeername()[0]
    address = ipaddress.ip_address(text.partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _stranger(address: ipaddress.IPv4Address | ipaddress.IPv6Address, peer: Peer | None) -> str:
    """Return a user of this machine, an IPv4 address, or a network of IPv6, which one host has."""
    if address.is_loopback:
        return f"uid {peer.uid}" if peer is not None and peer.inode else "unknown"
    return str(address) if address.version == 4 else address.exploded[:19]


_CONNECTION = "kopt.connection"
"""Key of an ASGI scope's state: the `TimedConnection` of the request."""
_PIECE_BYTES = 64 * 1024


class LingeringClose:
    """The connections of one server that have been closed and whose clients may still send."""

    def __init__(self, limits: HttpLimits) -> None:
        """Keep within `limits`."""
        self._limits = limits
        self._open: set[_Rest] = set()

    def take(self, transport: asyncio.Transport) -> None:
        """Take over the connection of `transport`, which is about to close its descriptor.

        Beyond the limits the connection closes at once.
        """
        if len(self._open) >= self._limits.lingering:
            return
        with contextlib.suppress(OSError):  # it is gone already, or there is no descriptor left
            connection: socket.socket = transport.get_extra_info("socket").dup()
            self._open.add(_Rest(connection, self._limits, self._open.discard))

    def end(self) -> None:
        """Close all of them."""
        for rest in list(self._open):
            rest.end()


class _Rest:
    """A closed connection whose client may still send."""

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


class TimedConnection(asyncio.Protocol):
    """The deadline, refusal and lingering close that `timed_connection` adds to uvicorn's class."""

    admission: ClassVar[Admission]
    lingering: ClassVar[LingeringClose]

    def __init__(self, *, app_state: dict[str, Any], **keywords: Any) -> None:
        """Take what uvicorn gives to its connections."""
        state = {**app_state, _CONNECTION: self}
        super().__init__(app_state=state, **keywords)  # type: ignore[call-arg] # uvicorn's class
        self._transport: asyncio.Transport
        self._admitted: Admitted | None = None
        self._deadline: asyncio.TimerHandle | None = None
        self._requests = 0
        self._awaits_headers = False

    @property
    def peer(self) -> Peer | None:
        """The other end of an accepted loopback connection."""
        return None if self._admitted is None else self._admitted.peer

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the first request, or refuse the connection."""
        assert isinstance(transport, asyncio.Transport)  # of a stream
        self._transport = transport
        admitted = self.admission.enter(transport.get_extra_info("socket"))
        if isinstance(admitted, Response):
            transport.write(on_the_wire(admitted))
            transport.close()
            return
        self._admitted = admitted
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        """Take in bytes: of headers unless a request is being answered."""
        if self._admitted is None:  # they came with the refusal
            return
        if not self._requests and not self._awaits_headers:
            self._await_headers()
        super().data_received(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no longer; linger, because the client may still be sending."""
        if exc is None:
            self.lingering.take(self._transport)
        if self._admitted is None:  # it was refused
            return
        self._close_after(None)
        self.admission.leave(self._admitted)
        super().connection_lost(exc)

    def begin_request(self) -> None:
        """Note that the headers of a request are there."""
        self._requests += 1
        self._awaits_headers = False
        self._close_after(None)

    def end_request(self) -> None:
        """Wait for the next request; the next one that came early may be at work already."""
        self._requests -= 1
        if not self._requests and not self._transport.is_closing():
            self._close_after(self.admission.limits.idle_s)

    def _await_headers(self) -> None:
        self._awaits_headers = True
        self._close_after(self.admission.limits.header_s)

    def _close_after(self, seconds: float | None) -> None:
        """Replace the deadline of the connection; None: it has none."""
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = None
        if seconds is not None:
            loop = asyncio.get_running_loop()
            self._deadline = loop.call_later(seconds, self._transport.close)


def timed_connection(
    http: type[asyncio.Protocol], admission: Admission, lingering: LingeringClose
) -> type[asyncio.Protocol]:
    """Return uvicorn's connection class `http`, with what `TimedConnection` adds to it."""
    members = {"admission": admission, "lingering": lingering}
    return type("TimedConnection", (TimedConnection, http), members)


def timed_requests(app: ASGIApp) -> ASGIApp:
    """Return `app`, which tells the connection of each request when it begins and ends."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        connection = connection_of(scope)
        if connection is None:
            await app(scope, receive, send)
            return
        connection.begin_request()
        try:
            await app(scope, receive, send)
        finally:
            connection.end_request()

    return answer


def connection_of(scope: Scope) -> TimedConnection | None:
    """Return the connection that a request came by; None if none is known."""
    found = scope.get("state", {}).get(_CONNECTION)
    return found if isinstance(found, TimedConnection) else None
