"""The options of `kopt serve --http`, as one decorator and one frozen record.

It reads flags only: what they lead to is decided in listen_address.py, before anything is served.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from .token_file import write_token

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
