"""The process of this machine at the other end of a loopback connection.

Every user of a machine can connect to its loopback address, and a server without a token would run
code for each of them. Linux says whose socket it is, so no other user is served. It must be asked
when the connection is accepted: later its other end may be gone, and what it sent is still read.
"""

import glob
import ipaddress
import os
import socket
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

Endpoint = tuple[str, int]
"""Address and port."""
_TABLES = (("/proc/net/tcp", 4), ("/proc/net/tcp6", 6))
_MAPPED = bytes(10) + b"\xff\xff"
"""Begins an IPv6 address that stands for one of IPv4."""
_UID, _INODE = 7, 9
"""Columns. Source: proc_net_tcp(5)."""


@dataclass(frozen=True)
class Peer:
    """One end of a connection, as the kernel knows it."""

    uid: int
    """The user of the socket; 0 as well for one that was closed already."""
    inode: int
    """The socket's number; 0: it was closed."""

    @property
    def is_own(self) -> bool:
        """Whether it belongs to this process's user, or to root, who may do everything anyway."""
        return self.inode != 0 and self.uid in (0, os.geteuid())


def peer_of(connection: socket.socket) -> Peer | None:
    """Return the other end of an accepted connection; None if the kernel names none.

    That is no sign of a friend: it is so as well for a connection that was reset, and where this
    process may open no more files.
    """
    try:
        theirs, ours = _end(connection.getpeername()), _end(connection.getsockname())
        own_inode = os.fstat(connection.fileno()).st_ino
        tables = [(_text(path), version) for path, version in _TABLES]
    except OSError:
        return None
    here = _find(tables, ours, theirs)
    # Another connection may have the same ends once this one was reset.
    return _find(tables, theirs, ours) if here is not None and here.inode == own_inode else None


def names_peers(address: str) -> bool:
    """Return whether the kernel tells whose a connection to loopback `address` is."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.create_server((address, 0), family=family) as listener:
        client = socket.create_connection(listener.getsockname()[:2])
        server, _ = listener.accept()
        with client, server:
            peer = peer_of(server)
    return peer is not None and peer.is_own


def process_of(inode: int) -> int | None:
    """Return the id of a process that holds the socket `inode`; None if none can be seen."""
    wanted = f"socket:[{inode}]"
    for path in glob.iglob("/proc/[0-9]*/fd/*"):  # those of other users are not listed
        with suppress(OSError):  # closed meanwhile
            if os.readlink(path) == wanted:
                return int(path.split("/")[2])
    return None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii")
    except FileNotFoundError:  # a kernel without IPv6
        return ""


def _end(name: tuple[str, int]) -> Endpoint:
    """Return one end as the kernel means it: an IPv4 address as such."""
    address = ipaddress.ip_address(name[0].partition("%")[0])
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address), name[1]


def _find(tables: list[tuple[str, int]], end: Endpoint, other: Endpoint) -> Peer | None:
    """Return what stands in the row of the socket at `end` that is connected to `other`."""
    for table, version in tables:
        if version == 4 and ":" in end[0]:
            continue
        ends = f": {_written(end, version)} {_written(other, version)} "
        start = table.find(ends)
        if start >= 0:
            row = table[table.rfind("\n", 0, start) + 1 :].partition("\n")[0].split()
            return Peer(int(row[_UID]), int(row[_INODE]))
    return None


def _written(end: Endpoint, version: int) -> str:
    """Return an endpoint as the table writes it: words of 4 bytes in the machine's order."""
    address, port = end
    if ":" in address:
        raw = socket.inet_pton(socket.AF_INET6, address)
    else:
        raw = (b"" if version == 4 else _MAPPED) + socket.inet_pton(socket.AF_INET, address)
    words = (raw[start : start + 4][::-1].hex() for start in range(0, len(raw), 4))
    return f"{''.join(words).upper()}:{port:04X}"
