"""`kopt kb forget`: evidence that shall count no more."""

from dataclasses import dataclass

import click

from kopt.server.exits import ExitCode
from kopt.server.knowledge_access import open_knowledge
from kopt.server.session import Session, command_body, print_document

EPILOG = """\b
Examples:
  kopt kb forget run-20260101-120000-000
  kopt kb forget run-20260101-120000-000/17
  kopt kb forget k3f9a2c1b"""


@dataclass(frozen=True)
class ForgetOptions:
    """What to forget."""

    name: str


@click.command("forget", epilog=EPILOG)
@click.argument("name", metavar="RUN|SAMPLE|ORIGIN")
@command_body(ForgetOptions)
def command(session: Session, options: ForgetOptions) -> int:
    """Revoke what a run, one sample or an imported base has taught, for good.

    The base is projected again without it; earlier versions keep it (kopt kb diff --since N).
    """
    with open_knowledge(session.settings) as store:
        forgotten = store.forget(options.name)
    if session.as_json:
        schema = "kopt.knowledge-forget/1"
        print_document({"schema": schema, "status": "passed", "forgotten": list(forgotten)})
    elif forgotten:
        click.echo(f"forgotten: {', '.join(forgotten)}")
    else:
        click.echo(f"{options.name} was forgotten before")
    return ExitCode.PASSED
