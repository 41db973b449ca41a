"""The options of `kopt serve --http`: where it listens, the names, origins and tokens it accepts.

Loopback needs nothing. Any other address needs tokens and names, because anyone who reaches the
server compiles and runs code on this machine. All mistakes are found before it is served.
"""

import errno
import functools
import ipaddress
import re
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from kopt.config.errors import ToolError

from .local_peer import names_peers
from .token_file import Tokens, read_tokens, write_token

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


def _new_token(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Write a token to `path` and end the command."""
    if path is None or ctx.resilient_parsing:
        return
    path = path.expanduser()
    write_token(path)
    click.echo(f"{path} holds a new token; only you can read it.")
    click.echo(f"Serve with it: kopt serve --http --token-file {path}")
    click.echo("Clients send it as a header: Authorization: Bearer TOKEN")
    ctx.exit()


_FILE = click.Path(path_type=Path)
_OPTIONS = (
    click.option("--http", is_flag=True, help="Serve streamable HTTP instead of stdin and stdout."),
    click.option(
        "--host", metavar="ADDRESS", help=f"Where to listen (--http).  [default: {DEFAULT_HOST}]"
    ),
    click.option(
        "--port",
        type=click.IntRange(0, 65535),
        metavar="N",
        help=f"Where to listen (--http); 0: any free port.  [default: {DEFAULT_PORT}]",
    ),
    click.option(
        "--token-file",
        type=_FILE,
        metavar="FILE",
        help="Ask clients for a bearer token out of FILE (--http); beyond loopback a must.",
    ),
    click.option(
        "--allowed-host",
        "allowed_hosts",
        multiple=True,
        metavar="NAME",
        help="A name that clients reach this machine by (--http); beyond loopback a must.",
    ),
    click.option(
        "--allowed-origin",
        "allowed_origins",
        multiple=True,
        metavar="URL",
        help="A web page that may call, e.g. https://tools.example (--http).",
    ),
    click.option(
        "--new-token",
        type=_FILE,
        metavar="FILE",
        is_eager=True,
        expose_value=False,
        callback=_new_token,
        help="Write a new token to FILE (mode 0600) and end.",
    ),
)


def http_options(callback: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of HTTP; `callback` gets them as `http`: HttpOptions, or None for stdio.

    Stands above `command_body`, whose record then needs one field, `http`.
    """

    @functools.wraps(callback)
    def with_http(**parameters: Any) -> Any:
        is_http = parameters.pop("http")
        names = ("host", "port", "token_file", "allowed_hosts", "allowed_origins")
        found = {name: parameters.pop(name) for name in names}
        given = {name: value for name, value in found.items() if value not in (None, ())}
        if given and not is_http:
            flag = next(iter(given)).removesuffix("s").replace("_", "-")
            raise click.UsageError(f"--{flag} is for HTTP: add --http, or leave it out for stdio")
        return callback(http=HttpOptions(**given) if is_http else None, **parameters)

    decorated: Callable[..., Any] = with_http
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    return decorated


PATH = "/mcp"
LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")
_HOST = re.compile(r"(?P<name>\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:(?P<port>\d{1,5}))?")
_ORIGIN = re.compile(r"https?://(\[[0-9a-f:.]+\]|[a-z0-9_.-]+)(:\d{1,5})?")
_BACKLOG = 512
_EXAMPLE_TOKEN_FILE = "~/.config/kopt/token"
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


def open_doorway(options: HttpOptions) -> Doorway:
    """Check `options` and listen.

    Raises:
        ToolError: The address cannot be used, needs what is not given, or what is given is wrong.
    """
    hosts = {_allowed_host(text) for text in options.allowed_hosts}
    pages = tuple(_allowed_origin(text) for text in options.allowed_origins)
    family, address = _resolved(options)
    is_loopback = ipaddress.ip_address(address[0].partition("%")[0]).is_loopback
    if not is_loopback and (options.token_file is None or not hosts):
        raise ToolError(_exposed(options))
    tokens = None if options.token_file is None else read_tokens(options.token_file.expanduser())
    if tokens is None and not _can_tell_users(address[0]):
        raise ToolError(
            "this machine does not tell whose process a connection comes from (/proc/net/tcp), so"
            " every user of it could run code as you: start kopt serve --http with --token-file"
            " FILE (kopt serve --new-token FILE makes one)"
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
    token_file = options.token_file or _EXAMPLE_TOKEN_FILE
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
  kopt serve --new-token {_EXAMPLE_TOKEN_FILE}
  {command}"""
