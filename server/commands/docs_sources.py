"""`kopt docs sources`: what is searched, what could be, and where the index lies."""

import click

from kopt.server.exits import ExitCode
from kopt.server.progress import step_bar
from kopt.server.session import Session, command_body
from kopt.server.views.docs_library_view import build_step, sources_view
from kopt.tools.docs.library_index.choices import forget_source
from kopt.tools.docs.query.source_list import list_sources

EPILOG = """\b
Examples:
  kopt docs sources
  kopt docs sources --forget mine"""


@click.command("sources", epilog=EPILOG)
@click.option(
    "--forget",
    metavar="NAME",
    help="First take a library, repository or folder out of the index and of later builds.",
)
@command_body()
def command(session: Session, forget: str | None) -> int:
    """List the sources: version, licence, weight in the ranking, files, documents."""
    if forget is not None:
        with step_bar(quiet=session.as_json) as show:
            forget_source(forget, session.settings, lambda progress: show(build_step(progress)))
    result = list_sources(session.settings)
    session.show(result, sources_view(result, session.settings.without_sources))
    return ExitCode.PASSED
