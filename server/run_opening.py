"""What is said when a run begins or goes on: its id, and what answers in it."""

import click

from kopt.search.models.model_source import NO_KEY
from kopt.search.store.store import RunStore

from .run_options import RunOptions
from .session import Session

NO_MODELS = "--no-models: none is asked; kopt writes kernels where it can, and sweeps `tune`"
NOTHING_DRAWN = (
    "strategy maic_rl draws techniques for a model to write: without one nothing is drawn;"
    " make demo-study shows it with a scripted model"
)
REPLAYED = "{} answers in Claude's place: nothing is paid, costs are those of the recorded calls"


def say_who_is_asked(store: RunStore, session: Session, options: RunOptions) -> None:
    """Say which run begins or goes on, and what answers in it."""
    run = store.reader.state().settings
    click.echo(f"{store.folder.name} of {run.kernel}", err=True)
    if options.models.exists(session.settings):
        click.echo(f"budget: {run.budget}", err=True)
    else:
        click.echo(NO_MODELS if options.no_models else NO_KEY, err=True)
        if run.search.strategy == "maic_rl":
            click.echo(NOTHING_DRAWN, err=True)
    if options.models.recording is not None:
        click.echo(REPLAYED.format(options.replay), err=True)
