"""`kopt setup CLIENT`: enter kopt in the settings of an MCP client, or take it out again.

With --skill the skill goes into the client's folder of skills instead.
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

import click
from click.core import ParameterSource

from kopt.config.errors import ToolError
from kopt.config.settings import client_folders
from kopt.server.clients.change import ConfigChange, SetupTarget, carry_out, plan_entry, plan_undo
from kopt.server.clients.client import Scope, Server
from kopt.server.clients.known_clients import CLIENTS
from kopt.server.clients.named_server import own_server, running_server
from kopt.server.clients.skill_folder import (
    SkillChange,
    carry_out_skill,
    plan_skill,
    plan_skill_undo,
)
from kopt.server.exits import ExitCode
from kopt.server.session import Session, command_body, print_document

Change = ConfigChange | SkillChange
SCHEMA = "kopt.setup/1"
NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")

EPILOG = """\b
Examples:
  kopt setup claude
  kopt setup codex --print
  kopt setup gemini --undo
  kopt setup vscode --http http://127.0.0.1:8765/mcp --token-env KOPT_TOKEN
  kopt setup claude-desktop -- --workspace ~/kernels
  kopt setup claude --skill

\b
The change is shown first and made once you agree (--yes agrees beforehand). What
was there is kept beside it; --undo puts it back. What follows -- is handed to
`kopt serve`. claude and vscode write a file in this folder, the others one in
your home folder; --scope chooses. --skill writes the skill that teaches an agent
the work with kopt, by its tools or by commands; what somebody else changed in it
is replaced only once you have seen it. More: docs/clients.md."""


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
    skill: bool
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
@click.option("--skill", is_flag=True, help="Write the skill kopt instead of the server's entry.")
@click.option("--http", metavar="URL", help="A server that runs already, instead of starting one.")
@click.option("--token-env", metavar="NAME", help="With --http: the variable with its token.")
@command_body(SetupOptions)
def command(session: Session, options: SetupOptions) -> int:
    """Enter kopt in the settings of an MCP client.

    CLIENT is claude, claude-desktop, codex, gemini, vscode, cursor or opencode;
    with --skill not claude-desktop.
    """
    place = _place(options)
    change = _planned(place, options)
    if not session.as_json:
        _show(place, change, options.print_only)
    is_made = change.is_needed and not options.print_only
    if is_made and not _is_agreed(session, change, options.yes):
        click.echo("nothing was changed")
        return ExitCode.PASSED
    backup = _carried_out(change, options.name) if is_made else None
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
    if options.skill and _about_a_server(options):
        raise click.UsageError("--skill writes no server's entry: it goes with --scope and --undo")
    if options.undo and (options.http or options.token_env or options.serve_options):
        raise click.UsageError("--undo takes back the last setup: it goes with --scope and --name")
    scope = options.scope or client.default_scope
    if scope not in client.scopes and not options.skill:
        raise click.UsageError(f"{client.title} has no {scope} file; leave out --scope")
    return SetupTarget(client, scope, options.name, client_folders(), Path.cwd())


def _about_a_server(options: SetupOptions) -> bool:
    """Return whether anything was said of the server that is to be entered."""
    context = click.get_current_context()
    is_said = ParameterSource.COMMANDLINE in map(context.get_parameter_source, ("name", "problems"))
    return bool(is_said or options.http or options.token_env or options.serve_options)


def _planned(place: SetupTarget, options: SetupOptions) -> Change:
    if options.skill:
        return plan_skill_undo(place) if options.undo else plan_skill(place)
    return plan_undo(place) if options.undo else plan_entry(place, _server(options))


def _server(options: SetupOptions) -> Server:
    """Return what is to be entered: this kopt, or the server at --http."""
    if options.http is None:
        if options.token_env is not None:
            raise click.UsageError("--token-env goes with --http")
        problems: Path | None = click.get_current_context().params["problems"]
        return own_server(options.serve_options, problems)
    if options.serve_options:
        raise click.UsageError("options of `kopt serve` are given where the server is started")
    return running_server(options.http, options.token_env)


def _carried_out(change: Change, name: str) -> Path | None:
    if isinstance(change, SkillChange):
        return carry_out_skill(change)
    return carry_out(change, name)


def _show(place: SetupTarget, change: Change, in_full: bool) -> None:
    what = "skill" if isinstance(change, SkillChange) else "file"
    state = " (not there yet)" if change.is_new else ""
    click.echo(f"{place.client.title}, {place.scope} {what}: {change.path}{state}")
    if change.is_needed:
        shown = change.diff
        if isinstance(change, SkillChange) and not in_full:
            shown = change.summary
        click.echo(f"\n{shown}")


def _is_agreed(session: Session, change: Change, yes: bool) -> bool:
    """Ask on a terminal, unless that was agreed to beforehand.

    Raises:
        ToolError: There is no terminal, or texts that nobody has seen would be replaced.
    """
    replaced = change.replaced if isinstance(change, SkillChange) else ()
    if yes and not replaced:
        return True
    if session.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        if replaced:
            raise ToolError(
                f"nothing was changed: kopt did not write {', '.join(replaced)} in"
                f" {change.path} as it is now, and --yes does not replace what you may not have"
                " seen. Call this on a terminal and agree to the difference, or move the folder"
                " away first"
            )
        raise ToolError(
            "nothing was changed: there is no terminal to ask on. Add --yes to make the change,"
            " or --print to only show it"
        )
    if replaced:
        return click.confirm(f"Replace text that kopt did not write ({', '.join(replaced)})?")
    return click.confirm("Make this change?")


def _report(place: SetupTarget, change: Change, is_made: bool, backup: Path | None) -> None:
    if not change.is_needed:
        click.echo("nothing to do: it says so already")
    elif not is_made:
        click.echo("nothing was changed (--print)")
    elif backup is None:
        done = "restored" if change.path.exists() else "removed"
        click.echo(f"{done} {change.path}")
    else:
        there = "folder" if isinstance(change, SkillChange) else "file"
        noted = f"noted for --undo that no {there} was there"
        click.echo(
            f"wrote {change.path}\n{noted if change.is_new else 'kept what was there'}: {backup}"
        )
        click.echo(f"next: {_next_step(place, change)}")
        click.echo(f"to undo: {_undo_command(place, change)}")


def _print_document(place: SetupTarget, change: Change, is_made: bool, backup: Path | None) -> None:
    print_document(
        {
            "schema": SCHEMA,
            "status": "passed",
            "client": place.client.key,
            "what": "skill" if isinstance(change, SkillChange) else "server",
            "scope": place.scope,
            "path": str(change.path),
            "needed": change.is_needed,
            "made": is_made,
            "diff": change.diff,
            "backup": None if backup is None else str(backup),
            "next": None if change.undoes else _next_step(place, change),
        }
    )


def _next_step(place: SetupTarget, change: Change) -> str:
    if isinstance(change, SkillChange) and place.client.skills is not None:
        return place.client.skills.next_step
    return place.client.next_step[place.scope]


def _undo_command(place: SetupTarget, change: Change) -> str:
    words = ["kopt setup", place.client.key, "--undo"]
    if isinstance(change, SkillChange):
        words.append("--skill")
    if place.scope != place.client.default_scope:
        words.append(f"--scope {place.scope}")
    if place.name != "kopt":
        words.append(f"--name {place.name}")
    return " ".join(words)
