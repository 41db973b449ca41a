"""`kopt kb export`: the whole base as one document."""

from dataclasses import dataclass
from pathlib import Path

import click

from kopt.server.exits import ExitCode
from kopt.server.knowledge_access import hand_out, open_knowledge
from kopt.server.session import Session, command_body

EPILOG = """\b
Examples:
  kopt kb export --to mine.yaml
  kopt kb export > mine.yaml"""


@dataclass(frozen=True)
class ExportOptions:
    """Where the document goes."""

    to: Path | None


@click.command("export", epilog=EPILOG)
@click.option(
    "-o",
    "--to",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where to write it.  [default: stdout]",
)
@command_body(ExportOptions)
def command(session: Session, options: ExportOptions) -> int:
    """Write everything that another base can use: states, techniques, evidence, notes.

    No source of a candidate is in it, but the names of kernels and runs are.
    """
    with open_knowledge(session.settings) as store:
        hand_out(session, store.export(), options.to)
    return ExitCode.PASSED
