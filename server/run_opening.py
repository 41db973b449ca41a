"""What is said when a run begins or goes on: its id, and what answers in it."""

import click

from kopt.config.providers import NAMES
from kopt.search.models.model_source import NO_KEY
from kopt.search.store.store import RunStore

from .run_options import RunOptions
from .session import Session

NO_MODELS = "--no-models: none is asked; kopt writes kernels where it can, and sweeps `tune`"
NOTHING_DRAWN = (
    "strategy maic_rl draws techniques for a model to write: without one nothing is drawn;"
    " make demo-study shows it with a scripted model"
)
HEADLESS = "{} writes, headless, by its own login and without tools of its own"
REPLAYED = "{} answers in a model's place: nothing is paid, costs are those of the recorded calls"


def say_who_is_asked(store: RunStore, session: Session, options: RunOptions) -> None:
    """Say which run begins or goes on, and what answers in it."""
    run, models = store.reader.state().settings, options.models
    click.echo(f"{store.folder.name} of {run.kernel}", err=True)
    if models.exists(session.settings):
        click.echo(f"budget: {run.budget}", err=True)
        if models.is_headless and models.replay is None:
            click.echo(HEADLESS.format(NAMES[models.provider]), err=True)
    else:
        click.echo(NO_MODELS if options.no_models else NO_KEY, err=True)
        if run.search.strategy == "maic_rl":
            click.echo(NOTHING_DRAWN, err=True)
    if options.models.recording is not None:
        click.echo(REPLAYED.format(options.replay), err=True)
