"""`kopt kb samples`: the replay buffer, what was tried and what came of it."""

from dataclasses import dataclass
from pathlib import Path

import click

from kopt.config.settings import Settings
from kopt.search.knowledge.policy.overview import find_state
from kopt.search.knowledge.store import KnowledgeStore
from kopt.search.store.run_folders import find_folder, run_folders
from kopt.server.exits import ExitCode
from kopt.server.knowledge_access import open_knowledge
from kopt.server.session import Session, command_body, print_document, print_view
from kopt.server.views.knowledge_view import samples_view

EPILOG = """\b
Examples:
  kopt kb samples
  kopt kb samples --run run-20260101-120000-000
  kopt kb samples --state dram_saturated --last 100"""


@dataclass(frozen=True)
class SamplesOptions:
    """Which samples."""

    run: str | None
    state: str | None
    last: int


@click.command("samples", epilog=EPILOG)
@click.option("--run", metavar="RUN", help="Only of this run: its id, or an unmistakable part.")
@click.option("--state", metavar="STATE", help="Only of programs in this state.")
@click.option(
    "--last", type=click.IntRange(min=1), default=20, show_default=True, help="How many, at most."
)
@command_body(SamplesOptions)
def command(session: Session, options: SamplesOptions) -> int:
    """Show the latest tries: predicted and measured or estimated gain of each, and its outcome."""
    with open_knowledge(session.settings) as store:
        if options.state is not None:
            find_state(store.base(), options.state)
        run = None if options.run is None else _known_run(options.run, store, session.settings)
        samples = store.samples(options.last, options.state, run)
    if session.as_json:
        shown = [sample.model_dump(mode="json") for sample in samples]
        print_document({"schema": "kopt.samples/1", "status": "passed", "samples": shown})
    elif samples:
        print_view(samples_view(samples))
    else:
        click.echo("no such samples; runs with techniques or sweeps leave some: kopt run")
    return ExitCode.PASSED


def _known_run(text: str, store: KnowledgeStore, settings: Settings) -> str:
    """Return the id of the run that `text` names, among those with samples and those on disk.

    Raises:
        ToolError: No run or several runs match; the message shows what there is.
    """
    names = {sample.run for sample in store.samples()}
    names |= {folder.name for folder in run_folders(settings)}
    newest_first = [Path(name) for name in sorted(names, reverse=True)]
    return find_folder(text, newest_first, ("run", "runs")).name
