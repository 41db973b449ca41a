"""`kopt setup CLIENT`: enter kopt in the settings of an MCP client, or take it out again."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit

import click
from click.core import ParameterSource

from kopt.config.errors import ToolError
from kopt.config.settings import client_folders, server_variables
from kopt.server.clients.change import ConfigChange, SetupTarget, carry_out, plan_entry, plan_undo
from kopt.server.clients.client import LocalServer, RemoteServer, Scope, Server
from kopt.server.clients.known_clients import CLIENTS
from kopt.server.exits import ExitCode
from kopt.server.session import Session, command_body, print_document

SCHEMA = "kopt.setup/1"
NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
STDIO_OPTIONS = frozenset({"read_only", "workspaces", "devices", "problems"})
"""Parameters of `kopt serve` that mean something where a client starts it."""

EPILOG = """\b
Examples:
  kopt setup claude
  kopt setup codex --print
  kopt setup gemini --undo
  kopt setup vscode --http http://127.0.0.1:8765/mcp --token-env KOPT_TOKEN
  kopt setup claude-desktop -- --workspace ~/kernels

\b
The change is shown first and made once you agree (--yes agrees beforehand). The
file as it was is kept beside it; --undo puts it back. What follows -- is handed
to `kopt serve`. claude and vscode write a file in this folder, the others one in
your home folder; --scope chooses. More: docs/clients.md."""


@dataclass(frozen=True)
class SetupOptions:
    """The arguments of the command line."""

    client: str
    serve_options: tuple[str, ...]
    print_only: bool
    undo: bool
    yes: bool
    scope: Scope | None
    name: str
    http: str | None
    token_env: str | None


@click.command("setup", epilog=EPILOG)
@click.argument("client", type=click.Choice(list(CLIENTS)), metavar="CLIENT")
@click.argument("serve_options", nargs=-1, metavar="[-- SERVE_OPTION...]")
@click.option("--print", "print_only", is_flag=True, help="Only show the change.")
@click.option("--undo", is_flag=True, help="Put back what was there before the last setup.")
@click.option("--yes", is_flag=True, help="Make the change without asking.")
@click.option(
    "--scope",
    type=click.Choice(["user", "project"]),
    help="The user's file, or the one of this folder.  [default: by client]",
)
@click.option("--name", default="kopt", show_default=True, help="The server's name in the file.")
@click.option("--http", metavar="URL", help="A server that runs already, instead of starting one.")
@click.option("--token-env", metavar="NAME", help="With --http: the variable with its token.")
@command_body(SetupOptions)
def command(session: Session, options: SetupOptions) -> int:
    """Enter kopt in the settings of an MCP client.

    CLIENT is claude, claude-desktop, codex, gemini, vscode, cursor or opencode.
    """
    place = _place(options)
    change = plan_undo(place) if options.undo else plan_entry(place, _server(options))
    if not session.as_json:
        _show(place, change)
    is_made = change.is_needed and not options.print_only
    if is_made and not options.yes and not _agreed(session):
        click.echo("nothing was changed")
        return ExitCode.PASSED
    backup = carry_out(change, options.name) if is_made else None
    if session.as_json:
        _print_document(place, change, is_made, backup)
    else:
        _report(place, change, is_made, backup)
    if is_made and options.token_env and not session.as_json:
        click.echo(f"{options.token_env} must be set where {place.client.title} is started")
    return ExitCode.PASSED


def _place(options: SetupOptions) -> SetupTarget:
    client = CLIENTS[options.client]
    if not NAME.fullmatch(options.name):
        raise click.UsageError(
            f"--name {options.name!r}: up to 32 letters, digits, '-' and '_' are allowed"
        )
    if options.undo and (options.http or options.token_env or options.serve_options):
        raise click.UsageError("--undo takes back the last setup: it goes with --scope and --name")
    scope = options.scope or client.default_scope
    if scope not in client.scopes:
        raise click.UsageError(f"{client.title} has no {scope} file; leave out --scope")
    return SetupTarget(client, scope, options.name, client_folders(), Path.cwd())


def _server(options: SetupOptions) -> Server:
    """Return what is to be entered: this kopt, or the server at --http."""
    if options.http is None:
        if options.token_env is not None:
            raise click.UsageError("--token-env goes with --http")
        _check_serve_options(options.serve_options)
        command, *arguments = _own_command()
        arguments.append("serve")
        problems: Path | None = click.get_current_context().params["problems"]
        if problems is not None:
            arguments += ["--problems", str(problems.resolve())]
        return LocalServer(command, (*arguments, *options.serve_options), server_variables())
    if options.serve_options:
        raise click.UsageError("options of `kopt serve` are given where the server is started")
    if options.token_env is not None and not VARIABLE.fullmatch(options.token_env):
        raise click.UsageError("--token-env is the name of a variable, not the token itself")
    return RemoteServer(_address(options.http), options.token_env)


def _check_serve_options(words: tuple[str, ...]) -> None:
    """Refuse options with which the client could not start the server.

    Raises:
        click.UsageError: `kopt serve` does not take them, or a folder among them is relative.
    """
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


def _show(place: SetupTarget, change: ConfigChange) -> None:
    state = "" if change.file.data is not None else " (not there yet)"
    click.echo(f"{place.client.title}, {place.scope} file: {change.file.path}{state}")
    if change.is_needed:
        click.echo(f"\n{change.diff}")


def _agreed(session: Session) -> bool:
    """Ask on a terminal.

    Raises:
        ToolError: There is no terminal.
    """
    if session.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ToolError(
            "nothing was changed: there is no terminal to ask on. Add --yes to make the change,"
            " or --print to only show it"
        )
    return click.confirm("Make this change?")


def _report(place: SetupTarget, change: ConfigChange, is_made: bool, backup: Path | None) -> None:
    is_new = change.file.data is None
    if not change.is_needed:
        click.echo("nothing to do: it says so already")
    elif not is_made:
        click.echo("nothing was changed (--print)")
    elif backup is None:
        click.echo(f"restored {change.file.path}")
    else:
        kept = "noted for --undo that no file was there" if is_new else "kept what was there"
        click.echo(f"wrote {change.file.path}\n{kept}: {backup}")
        click.echo(f"next: {place.client.next_step[place.scope]}")
        click.echo(f"to undo: {_undo_command(place)}")


def _print_document(
    place: SetupTarget, change: ConfigChange, is_made: bool, backup: Path | None
) -> None:
    print_document(
        {
            "schema": SCHEMA,
            "status": "passed",
            "client": place.client.key,
            "scope": place.scope,
            "path": str(change.file.path),
            "needed": change.is_needed,
            "made": is_made,
            "diff": change.diff,
            "backup": None if backup is None else str(backup),
            "next": None if change.undoes else place.client.next_step[place.scope],
        }
    )


def _undo_command(place: SetupTarget) -> str:
    words = ["kopt setup", place.client.key, "--undo"]
    if place.scope != place.client.default_scope:
        words.append(f"--scope {place.scope}")
    if place.name != "kopt":
        words.append(f"--name {place.name}")
    return " ".join(words)
