"""`kopt docs push`: upload the library index to Pinecone, once its cost was agreed to."""

import sys
from dataclasses import dataclass

import click

from kopt.config.errors import SetupError, ToolError
from kopt.server.exits import ExitCode, Interrupted
from kopt.server.progress import status_line, step_bar
from kopt.server.session import Session, command_body, print_record, print_view
from kopt.server.views.docs_library_view import estimate_view, push_step, push_view
from kopt.tools.docs.pinecone_index.push import push_library
from kopt.tools.docs.pinecone_index.push_plan import push_estimate
from kopt.tools.docs.pinecone_index.push_records import (
    MOST_TOKENS,
    STARTER_PLAN_CLOUD,
    STARTER_PLAN_REGION,
    PushRequest,
)

EPILOG = """\b
Examples:
  kopt docs push --dry-run
  kopt docs push --create
  kopt docs push --yes --json

\b
Needs kopt docs build before, and PINECONE_API_KEY; PINECONE_INDEX_NAME and
PINECONE_INDEX_HOST name the index. What is sent are cards of some 120 tokens and
the beginning of the code; files whose own licence forbids it or is not known
never, folders of yours only if --source names them. Ctrl-C loses nothing: the
same command goes on."""


@dataclass(frozen=True)
class PushOptions(PushRequest):
    """What to upload, and whether to ask before."""

    dry_run: bool = False
    yes: bool = False


@click.command("push", epilog=EPILOG)
@click.option("--dry-run", is_flag=True, help="Only estimate the cost; asks no service.")
@click.option("--create", is_flag=True, help="Make the index if there is none.")
@click.option("--yes", is_flag=True, help="Upload without asking.")
@click.option(
    "--source", "sources", multiple=True, metavar="KEY", help="Only this source; repeatable."
)
@click.option(
    "--most-tokens",
    default=MOST_TOKENS,
    show_default=True,
    help="Of each record; less costs less.",
)
@click.option(
    "--cloud", default=STARTER_PLAN_CLOUD, show_default=True, help="With --create: where."
)
@click.option(
    "--region", default=STARTER_PLAN_REGION, show_default=True, help="With --create: where."
)
@command_body(PushOptions)
def command(session: Session, options: PushOptions) -> int:
    """Upload the library to Pinecone, so that searches rank with its models too.

    The estimated cost is shown first, and asked about on a terminal.
    """
    with status_line(quiet=session.as_json) as show:
        show("counting what is to be sent")
        estimate = push_estimate(options, session.settings)
    if options.dry_run and session.as_json:
        print_record(estimate)
    elif not session.as_json:
        print_view(estimate_view(estimate))
    if options.dry_run:
        return ExitCode.PASSED
    if session.settings.pinecone_api_key is None:
        raise SetupError("nothing was uploaded: set PINECONE_API_KEY to a key of app.pinecone.io")
    if not options.yes and not _agreed(session):
        click.echo("nothing was uploaded")
        return ExitCode.PASSED
    _upload(session, options)
    return ExitCode.PASSED


def _agreed(session: Session) -> bool:
    """Ask on a terminal.

    Raises:
        ToolError: There is nobody to ask.
    """
    if session.as_json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ToolError(
            "nothing was uploaded: there is no terminal to ask on. Add --yes to upload, or"
            " --dry-run to only see what it costs"
        )
    return click.confirm("Upload?")


def _upload(session: Session, request: PushRequest) -> None:
    try:
        with step_bar(quiet=session.as_json) as show:
            result = push_library(
                request, session.settings, lambda progress: show(push_step(progress))
            )
    except KeyboardInterrupt as error:
        raise Interrupted(
            "interrupted; what was sent stays: the same command goes on from there"
        ) from error
    session.show(result, push_view(result))
