"""The server that a command line names: this kopt with options of `kopt serve`, or one by URL."""

import re
import sys
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from kopt.config.settings import server_variables

from .client import LocalServer, RemoteServer

VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
STDIO_OPTIONS = frozenset({"read_only", "workspaces", "devices", "problems"})
"""Parameters of `kopt serve` that mean something where a client starts it."""


def own_server(serve_options: tuple[str, ...], problems: Path | None) -> LocalServer:
    """Return this kopt as a server that a client starts with these options of `kopt serve`.

    Raises:
        click.UsageError: `kopt serve` does not take them, or a folder among them is relative.
    """
    _check_serve_options(serve_options)
    command, *arguments = _own_command()
    arguments.append("serve")
    if problems is not None:
        arguments += ["--problems", str(problems.resolve())]
    return LocalServer(command, (*arguments, *serve_options), server_variables())


def running_server(url: str, token_env: str | None) -> RemoteServer:
    """Return the server at `url`, with kopt's own path where it has none.

    Raises:
        click.UsageError: It is no such address, or `token_env` no name of a variable.
    """
    if token_env is not None and not VARIABLE.fullmatch(token_env):
        raise click.UsageError("--token-env is the name of a variable, not the token itself")
    return RemoteServer(_address(url), token_env)


def _check_serve_options(words: tuple[str, ...]) -> None:
    """Refuse options with which the client could not start the server."""
    if not words:
        return
    if not words[0].startswith("-"):
        raise click.UsageError(
            f"kopt setup takes one client at a time, and {words[0]!r} is no option of kopt serve"
        )
    from kopt.server.commands.serve import command as serve

    with serve.make_context("kopt serve", list(words)) as context:
        values: list[object] = []
        for given in context.params.values():
            is_several = isinstance(given, tuple)
            values.extend(cast("tuple[object, ...]", given) if is_several else (given,))
        typed = {
            name
            for name in context.params
            if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        }
        if typed - STDIO_OPTIONS:
            raise click.UsageError(
                "a client speaks to a server that it starts over stdin and stdout: leave out the"
                " options for HTTP, or start `kopt serve --http` yourself and use --http of setup"
            )
    for value in values:
        if isinstance(value, Path) and not value.is_absolute():
            raise click.UsageError(
                f"{str(value)!r} is relative, but a client starts the server in a folder of its"
                f" own choice: write {value.absolute()}"
            )


def _address(url: str) -> str:
    """Return `url` with kopt's own path where it has none."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise click.UsageError(
            f"--http {url!r} is not an address such as http://127.0.0.1:8765/mcp"
        )
    if parts.username or parts.password:
        raise click.UsageError("--http takes no password; name a variable with --token-env")
    return url if parts.path.strip("/") else parts._replace(path="/mcp").geturl()


def _own_command() -> tuple[str, ...]:
    """Return how to start this kopt from anywhere, whatever PATH is there.

    The interpreter's own path is not resolved: in a virtual environment it is a link, and what is
    behind it knows nothing of kopt.
    """
    script = Path(sys.executable).absolute().parent / "kopt"
    if script.is_file():
        return (str(script),)
    return (str(Path(sys.executable).absolute()), "-P", "-m", "kopt")
