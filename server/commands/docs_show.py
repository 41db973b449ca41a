"""`kopt docs show UID`: one document in full."""

import click

from kopt.search.advice.retrieval import Asker, read_for_run
from kopt.server.exits import ExitCode
from kopt.server.session import Session, command_body
from kopt.server.views.docs_view import document_view

EPILOG = """\b
Example:
  kopt docs show "headers:kernels/common/cp_async.cuh#9\""""


@click.command("show", epilog=EPILOG)
@click.argument("uid", metavar="UID")
@click.option("--run", metavar="RUN", help="Log it with this run (kopt runs).")
@command_body()
def command(session: Session, uid: str, run: str | None) -> int:
    """Show one document in full; UID is that of a search hit."""
    asker = Asker(run, "kopt docs show")
    document = read_for_run(uid, asker, session.settings)
    session.show(document, document_view(document))
    return ExitCode.PASSED
