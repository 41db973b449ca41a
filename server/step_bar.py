"""Long work in steps on stderr: one bar on a terminal, a line for what is new elsewhere."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn


@dataclass(frozen=True)
class Step:
    """How far the work is."""

    words: str
    """What it is about."""
    amount: str
    """How much of it is done, beside the bar."""
    line: str
    """What is said where there is no terminal, once; empty for nothing."""
    done: int
    total: int | None
    """None while it is not known."""


OnStep = Callable[[Step], None]


@contextmanager
def step_bar(quiet: bool) -> Generator[OnStep, None, None]:
    """Yield what shows a step; with `quiet` it shows nothing."""
    if quiet:
        yield lambda step: None
    elif sys.stderr.isatty():
        with _bar() as bar:
            yield _shown_on(bar)
    else:
        yield _said_once()


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[amount]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True, markup=False, highlight=False),
        transient=True,  # the summary that follows says more
    )


def _shown_on(bar: Progress) -> OnStep:
    task = bar.add_task("starting", total=None, amount="")

    def show(step: Step) -> None:
        bar.update(
            task,
            description=step.words,
            completed=step.done,
            total=step.total,
            amount=step.amount,
        )

    return show


def _said_once() -> OnStep:
    said: set[str] = set()

    def say(step: Step) -> None:
        if step.line and step.line not in said:
            said.add(step.line)
            click.echo(step.line, err=True)

    return say
