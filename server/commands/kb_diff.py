"""`kopt kb diff`: what has changed since a version, or how two bases differ."""

from dataclasses import dataclass
from pathlib import Path

import click

from kopt.config.settings import Settings
from kopt.search.knowledge.base import KnowledgeBase
from kopt.search.knowledge.diff import compare
from kopt.search.knowledge.yaml_reader import read_base
from kopt.search.knowledge.yaml_writer import render_complete
from kopt.server.exits import ExitCode
from kopt.server.knowledge_access import open_knowledge, read_base_file
from kopt.server.session import Session, command_body, print_document, print_view
from kopt.server.views.knowledge_view import differences_view

EPILOG = """\b
Examples:
  kopt kb diff --since 12
  kopt kb diff theirs.yaml
  kopt kb diff 12 15
  kopt kb diff mine.yaml theirs.yaml

\b
A and B are files or versions of this base; without B it is the present base."""


@dataclass(frozen=True)
class DiffOptions:
    """What is compared with what."""

    a: str | None
    b: str | None
    since: int | None


@click.command("diff", epilog=EPILOG)
@click.argument("a", metavar="[A]", required=False)
@click.argument("b", metavar="[B]", required=False)
@click.option("--since", type=int, metavar="N", help="What has changed since version N.")
@command_body(DiffOptions)
def command(session: Session, options: DiffOptions) -> int:
    """Show what B, or the present base, says that A does not say or says differently."""
    if (options.a is None) == (options.since is None):
        raise click.UsageError("name one thing to compare with: A, or --since N")
    names = (str(options.since) if options.a is None else options.a, options.b)
    bases = [_base(name, session.settings) for name in names]
    if any(map(_is_file, names)):
        # A file holds rounded numbers: rounding is no difference.
        bases = [read_base(render_complete(base), base.origin) for base in bases]
    differences = compare(*bases)
    if session.as_json:
        shown = [one.model_dump(mode="json") for one in differences]
        schema = "kopt.knowledge-diff/1"
        print_document({"schema": schema, "status": "passed", "differences": shown})
    else:
        print_view(differences_view(differences))
    return ExitCode.PASSED


def _base(name: str | None, settings: Settings) -> KnowledgeBase:
    if name is not None and _is_file(name):
        return read_base_file(Path(name))
    with open_knowledge(settings) as store:
        return store.base(None if name is None else int(name))


def _is_file(name: str | None) -> bool:
    return name is not None and not name.isdecimal()
