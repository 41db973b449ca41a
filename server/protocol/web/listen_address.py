"""The options of `kopt serve --http`: where it listens, the names, origins and tokens it accepts.

Loopback needs nothing. Any other address needs tokens and names, because anyone who reaches the
server compiles and runs code on this machine. All mistakes are found before it is served.
"""

import errno
import ipaddress
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kopt.config.errors import ToolError

from .local_peer import names_peers
from .token_file import Tokens, read_tokens

DEFAULT_HOST = "127.0.0.1"
DEFAULT_PORT = 8765


@dataclass(frozen=True)
class HttpOptions:
    """The address to listen on, and the clients that may come in."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    """The port to listen on; 0: any free one, which the server names at its start."""
    token_file: Path | None = None
    """Bearer tokens, one a line; None: none is asked for, which only loopback allows."""
    allowed_hosts: tuple[str, ...] = ()
    """Names under which clients reach the server (Host header), beside those of loopback."""
    allowed_origins: tuple[str, ...] = ()
    """Web pages whose scripts may call (Origin header)."""


PATH = "/mcp"
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:(?P<port>\d{1,5}))?")
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:\d{1,5})?")
_BACKLOG = 512
EXAMPLE_TOKEN_FILE = "~/.config/kopt/token"
_REASONS = {
    errno.EADDRINUSE: "it is in use; stop what listens there, or choose another --port"
    " (0: any free one)",
    errno.EACCES: "only root may listen on ports below 1024; choose another --port",
    errno.EADDRNOTAVAIL: "this machine has no such address; choose another --host",
}


@dataclass(frozen=True)
class Access:
    """The names, origins and tokens that requests must show."""

    hosts: frozenset[str]
    """Names of the server, lower-case: `name` with any port, `name:port` with this one."""
    origins: frozenset[str]
    """Origins of requests that name one, which browsers do and MCP clients do not."""
    pages: tuple[str, ...] = ()
    """Origins whose scripts may read the replies: the ones that the user named."""
    tokens: Tokens | None = None
    """The accepted tokens; None: no token is asked for."""

    def allows_host(self, header: str) -> bool:
        """Return whether a Host header names this server."""
        found = _HOST.fullmatch(header.lower())
        return found is not None and not self.hosts.isdisjoint({found["name"], found[0]})

    def allows_origin(self, header: str | None) -> bool:
        """Return whether an Origin header may call; None, no header, may."""
        return header is None or header.lower() in self.origins


@dataclass(frozen=True)
class Doorway:
    """A socket that listens already, and who may come in through it."""

    listener: socket.socket
    access: Access
    url: str
    is_loopback: bool


def open_doorway(
    options: HttpOptions, exposed: Callable[[HttpOptions], str] | None = None
) -> Doorway:
    """Check `options` and listen.

    Args:
        options: Where, and for whom.
        exposed: Says why an address beyond loopback is refused, and the whole command; None: for
            `kopt serve --http`.

    Raises:
        ToolError: The address cannot be used, needs what is not given, or what is given is wrong.
    """
    hosts = {_allowed_host(text) for text in options.allowed_hosts}
    pages = tuple(_allowed_origin(text) for text in options.allowed_origins)
    family, address = _resolved(options)
    is_loopback = ipaddress.ip_address(address[0].partition("%")[0]).is_loopback
    if not is_loopback and (options.token_file is None or not hosts):
        raise ToolError((exposed or _exposed)(options))
    tokens = None if options.token_file is None else read_tokens(options.token_file.expanduser())
    if tokens is None and not _can_tell_users(address[0]):
        raise ToolError(
            "this machine does not tell whose process a connection comes from (/proc/net/tcp), so"
            " every user of it could run code as you: start it with --token-file FILE"
            " (kopt serve --new-token FILE makes one)"
        )
    listener = _bound(family, address)
    port: int = listener.getsockname()[1]
    name = f"[{address[0]}]" if family == socket.AF_INET6 else address[0]
    own = {*LOOPBACK_NAMES, name} if is_loopback else set(LOOPBACK_NAMES)
    access = Access(
        hosts=frozenset(own | hosts),
        origins=frozenset({*pages, *(f"http://{one}:{port}" for one in own)}),
        pages=pages,
        tokens=tokens,
    )
    shown = name if is_loopback else sorted(hosts)[0].partition(":")[0] if hosts else name
    return Doorway(listener, access, f"http://{shown}:{port}{PATH}", is_loopback)


def open_loopback(port: int) -> Doorway:
    """Listen on loopback for a browser on this machine; nobody else is let in.

    Raises:
        ToolError: The port cannot be used.
    """
    listener = _bound(socket.AF_INET, (DEFAULT_HOST, port))
    taken: int = listener.getsockname()[1]
    origins = frozenset(f"http://{name}:{taken}" for name in LOOPBACK_NAMES)
    access = Access(frozenset(LOOPBACK_NAMES), origins)
    return Doorway(listener, access, f"http://{DEFAULT_HOST}:{taken}", True)


def names_users() -> bool:
    """Return whether this machine tells whose a connection to loopback is."""
    return _can_tell_users(DEFAULT_HOST)


def _allowed_host(text: str) -> str:
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


def _allowed_origin(text: str) -> str:
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


def _resolved(options: HttpOptions) -> tuple[int, Any]:
    try:
        found = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise ToolError(
            f"--host {options.host!r} is no address of this machine; leave it out for loopback"
        ) from error
    family, _, _, _, address = found[0]
    return family, address


def _can_tell_users(address: str) -> bool:
    try:
        return names_peers(address)
    except OSError:  # no such address: said where it is bound
        return True


def _bound(family: int, address: Any) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(_BACKLOG)
    except OSError as error:
        listener.close()
        reason = _REASONS.get(error.errno or 0, error.strerror)
        raise ToolError(f"cannot listen on {address[0]} port {address[1]}: {reason}") from error
    listener.setblocking(False)
    return listener


def _exposed(options: HttpOptions) -> str:
    """Return why the address is refused, the safer way, and the whole command."""
    missing = [] if options.token_file else ["--token-file FILE"]
    missing += [] if options.allowed_hosts else ["--allowed-host NAME"]
    port, name = options.port, socket.gethostname()
    token_file = options.token_file or EXAMPLE_TOKEN_FILE
    command = f"kopt serve --http --host {options.host} --port {port} --token-file {token_file}"
    for host in options.allowed_hosts or (name,):
        command += f" --allowed-host {host}"
    return f"""\
--host {options.host} can be reached from other machines, and whoever reaches this server compiles \
and runs code on this one; it is not served without {" and ".join(missing)}
Safer, and with neither: stay on loopback and forward the port over SSH
  here:    kopt serve --http --port {port}
  client:  ssh -N -L {port}:127.0.0.1:{port} {name}
           then use http://127.0.0.1:{port}{PATH}
Else, in a network that you trust (HTTP is not encrypted: the token can be read on the way)
  kopt serve --new-token {EXAMPLE_TOKEN_FILE}
  {command}"""
