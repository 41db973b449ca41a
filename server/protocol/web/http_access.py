"""Who may come in over HTTP: the names, origins and tokens that a server accepts."""

import re
from dataclasses import dataclass

from kopt.config.errors import ToolError

from .token_file import Tokens

LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:(?P<port>\d{1,5}))?")
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:\d{1,5})?")


@dataclass(frozen=True)
class Access:
    """What a request must show."""

    hosts: frozenset[str]
    """Lower-case; `name` with any port, `name:port` with this one."""
    origins: frozenset[str]
    """Of requests that name one, which browsers do and MCP clients do not."""
    pages: tuple[str, ...] = ()
    """Those origins whose scripts may read the replies: the ones that the user named."""
    tokens: Tokens | None = None
    """None: no token is asked for."""

    def allows_host(self, header: str) -> bool:
        """Return whether a Host header names this server."""
        found = _HOST.fullmatch(header.lower())
        return found is not None and not self.hosts.isdisjoint({found["name"], found[0]})

    def allows_origin(self, header: str | None) -> bool:
        """Return whether an Origin header may call; None, no header, may."""
        return header is None or header.lower() in self.origins


def allowed_host(text: str) -> str:
    """Read one --allowed-host.

    Raises:
        ToolError: It is no name, address or either with a port.
    """
    if not _HOST.fullmatch(text.lower()):
        raise ToolError(
            f"--allowed-host {text!r} is not NAME or NAME:PORT; there are no wildcards, because a"
            " web page could then reach this server under a name of its own (DNS rebinding)"
        )
    return text.lower()


def allowed_origin(text: str) -> str:
    """Read one --allowed-origin.

    Raises:
        ToolError: It is not of the form that browsers send.
    """
    if not _ORIGIN.fullmatch(text.lower()):
        raise ToolError(
            f"--allowed-origin {text!r} is not of the form https://NAME or https://NAME:PORT;"
            " there are no wildcards, because any web page could then run code here"
        )
    return text.lower()
