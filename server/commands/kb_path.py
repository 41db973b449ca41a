"""`kopt kb path`: where the base lies."""

from dataclasses import dataclass

import click

from kopt.server.exits import ExitCode
from kopt.server.knowledge_access import open_knowledge
from kopt.server.session import Session, command_body, print_document


@dataclass(frozen=True)
class PathOptions:
    """Nothing beyond what every command takes."""


@click.command("path", epilog="\b\nExample:\n  less $(kopt kb path)")
@command_body(PathOptions)
def command(session: Session, options: PathOptions) -> int:
    """Print where the base lies as YAML, up to date; the truth is samples.sqlite beside it."""
    del options
    with open_knowledge(session.settings) as store:
        path = store.path
    if session.as_json:
        print_document({"schema": "kopt.knowledge-path/1", "status": "passed", "path": str(path)})
    else:
        click.echo(path)
    return ExitCode.PASSED
