"""The connections that an HTTP server keeps: decided once, when each is accepted.

Only then is the other end of a loopback connection sure to be there still, and a connection that is
refused at once takes no place from others.
"""

import ipaddress
import os
import socket
from collections import Counter
from dataclasses import dataclass

from starlette.responses import Response

from .http_refusal import refused
from .local_peer import Peer, peer_of
from .request_limits import HttpLimits

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
            return refused(403, _unknown())
        peer = peer_of(connection) if address.is_loopback else None
        if peer is not None and peer.is_own:
            return Admitted(peer, None)
        if not self._serves_strangers:
            return refused(403, _foreign() if peer is not None and peer.inode else _unknown())
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


def _foreign() -> str:
    return (
        f"kopt serves the user with the id {os.geteuid()} on this machine and no other; with"
        " --token-file it serves whoever has a token"
    )


def _unknown() -> str:
    return (
        "kopt cannot tell whose process this is, and serves its own user's alone; try again, or"
        " start the server with --token-file"
    )
