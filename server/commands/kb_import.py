"""`kopt kb import`: what other bases have learned."""

from dataclasses import dataclass
from pathlib import Path

import click

from kopt.server.exits import ExitCode
from kopt.server.knowledge_access import open_knowledge, read_document
from kopt.server.session import Session, command_body, print_document

EPILOG = """\b
Example:
  kopt kb import theirs.yaml

\b
A file is taken whole or not at all; the same one twice changes nothing. Import
only what you trust: its gains and notes advise your runs. kopt kb forget ORIGIN
revokes all that came from one base."""


@dataclass(frozen=True)
class ImportOptions:
    """Which file."""

    file: Path


@click.command("import", epilog=EPILOG)
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@command_body(ImportOptions)
def command(session: Session, options: ImportOptions) -> int:
    """Take in the base that FILE describes (kopt kb export, merge, or a base.yaml).

    Its evidence is kept apart by origin and never counts as this base's own.
    """
    document = read_document(options.file)
    with open_knowledge(session.settings) as store:
        imported = store.import_(document, str(options.file))
    if session.as_json:
        print_document(
            {
                "schema": "kopt.knowledge-import/1",
                "status": "passed",
                "version": imported.version,
                "tries": imported.tries,
                "origins": list(imported.origins),
                "left_out": list(imported.left_out),
            }
        )
        return ExitCode.PASSED
    if imported.is_new:
        origins = ", ".join(imported.origins) or "no new evidence, but texts"
        tries = f" with {_counted(imported.tries)}" if imported.origins else ""
        click.echo(f"imported: {origins}{tries}; the base is at version {imported.version}")
    else:
        click.echo(f"nothing new; the base stays at version {imported.version}")
    if imported.left_out:
        click.echo(f"left out, own or forgotten: {', '.join(imported.left_out)}")
    return ExitCode.PASSED


def _counted(tries: int) -> str:
    return f"{tries} {'try' if tries == 1 else 'tries'}"
