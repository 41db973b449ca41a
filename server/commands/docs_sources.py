"""`kopt docs sources`: what is searched, and where the index lies."""

from dataclasses import dataclass

import click

from kopt.server.console import print_record, print_views
from kopt.server.exits import ExitCode
from kopt.server.session import Session, command_body
from kopt.server.views.docs_view import sources_view
from kopt.tools.docs.source_list import list_sources


@dataclass(frozen=True)
class SourcesOptions:
    """Nothing beyond what every command takes."""


@click.command("sources")
@command_body(SourcesOptions)
def command(session: Session, options: SourcesOptions) -> int:
    """List the sources with their licence and size, and where the index lies."""
    del options
    result = list_sources(session.settings)
    if session.as_json:
        print_record(result)
    else:
        print_views(sources_view(result))
    return ExitCode.PASSED
