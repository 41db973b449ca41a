"""`kopt pool status`: what the pools of a Ray cluster consist of and what they do."""

import click

from kopt.config.errors import ToolError
from kopt.config.pool_address import pool_address
from kopt.server.exits import ExitCode
from kopt.server.progress import status_line
from kopt.server.session import Session, command_body
from kopt.server.views.pool_view import pool_view
from kopt.tools.pool.pool_state import pool_statuses

EPILOG = """\b
Examples:
  kopt pool status
  kopt pool status --device ray://head:6379
  kopt pool status --json

\b
A pool begins with the first command that evaluates on it. Exit codes: 0 shown,
3 no Ray, or no cluster."""


@click.command("status", epilog=EPILOG)
@click.option(
    "--device",
    default="ray",
    metavar="ray|ray://HOST:PORT",
    help="The cluster.  [default: the one that runs on this machine]",
)
@command_body(uses_home=False)
def status(session: Session, device: str) -> int:
    """Show each evaluator and what it does, who waits for one, and how many are done a minute."""
    try:
        address = pool_address(device)
    except ToolError as error:
        raise click.BadParameter(str(error)) from None
    with status_line(quiet=session.as_json) as show:
        found = pool_statuses(address, session.settings, show)
    session.show({"schema": "kopt.pool/1", **found.model_dump(mode="json")}, pool_view(found))
    return ExitCode.PASSED
