"""Which process of this machine is at the other end of a loopback connection.

Every user of a machine can connect to its loopback address, and a server without a token would run
code for each of them. Linux says whose socket it is, so nobody else is served.
"""

import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

Endpoint = tuple[str, int]
"""Address and port."""
_MAPPED = bytes(10) + b"\xff\xff"
"""Begins an IPv6 address that stands for one of IPv4."""
_UID, _INODE = 7, 9
"""Columns. Source: proc_net_tcp(5)."""


@dataclass(frozen=True)
class Peer:
    """One end of a connection, as the kernel knows it."""

    uid: int
    """Whose socket it is; 0 as well for one that was closed already."""
    inode: int
    """The socket's number; 0: it was closed."""

    @property
    def is_own(self) -> bool:
        """Whether it belongs to this process's user, or to root, who may do everything anyway."""
        return self.inode != 0 and self.uid in (0, os.geteuid())


_CLOSED = Peer(0, 0)


def find_peer(client: Endpoint, server: Endpoint) -> Peer | None:
    """Return the `client` end of the connection to `server`.

    None: this system does not list the connection at all, so nothing can be said.
    """
    is_listed = False
    for path, version in (("/proc/net/tcp", 4), ("/proc/net/tcp6", 6)):
        try:
            table = Path(path).read_text(encoding="ascii")
            theirs, ours = _written(client, version), _written(server, version)
        except OSError:
            continue
        if row := _row(table, f" {theirs} {ours} "):
            return Peer(int(row[_UID]), int(row[_INODE]))
        is_listed = is_listed or f" {ours} {theirs} " in table
    return _CLOSED if is_listed else None


def process_of(inode: int) -> int | None:
    """Return the id of a process that holds the socket `inode`; None if none can be seen."""
    wanted = f"socket:[{inode}]"
    for pid in _processes():
        with suppress(OSError), os.scandir(f"/proc/{pid}/fd") as files:
            for file in files:
                if _target(file.path) == wanted:
                    return pid
    return None


def _row(table: str, ends: str) -> list[str] | None:
    start = table.find(ends)
    if start < 0:
        return None
    line = table[table.rfind("\n", 0, start) + 1 : table.index("\n", start)]
    return line.split()


def _written(end: Endpoint, version: int) -> str:
    """Return an endpoint as the table writes it: words of 4 bytes in the machine's order.

    Raises:
        OSError: The address is not of this version.
    """
    address, port = end
    if version == 4:
        raw = socket.inet_pton(socket.AF_INET, address)
    elif ":" in address:
        raw = socket.inet_pton(socket.AF_INET6, address)
    else:
        raw = _MAPPED + socket.inet_pton(socket.AF_INET, address)
    words = (raw[start : start + 4][::-1].hex() for start in range(0, len(raw), 4))
    return f"{''.join(words).upper()}:{port:04X}"


def _processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:  # closed meanwhile
        return ""
