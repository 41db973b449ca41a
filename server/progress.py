"""Progress on stderr: a changing line or a bar on a terminal, plain lines elsewhere.

A line that stands for long says for how long: a library that builds itself takes a minute, and
whoever waits must see that something moves.
"""

import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click
from rich.progress import BarColumn, Progress, Task, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from kopt.config.callbacks import ignore
from kopt.server.views.tables import WorkStep

from .terminal import terminal_console

Show = Callable[[str], None]

REPEATED_S = 10.0
"""So often a plain line is told again while it stands."""
_LEAST_S = 2.0  # a line that stands for less has no time beside it


@contextmanager
def status_line(quiet: bool) -> Generator[Show, None, None]:
    """Yield a function that shows one line of text; with `quiet` it shows nothing."""
    if quiet:
        yield ignore
    elif sys.stderr.isatty():
        console = terminal_console(stderr=True)
        with console.status("") as status:
            yield lambda text: status.update(TimedLine(text))
    else:
        with repeating(lambda text: click.echo(text, err=True)) as show:
            yield show


class TimedLine:
    """A line with the seconds since it was made; rich asks for it again and again."""

    def __init__(self, text: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin now."""
        self._text = text
        self._clock = clock
        self._began = clock()

    @property
    def text(self) -> str:
        """The line as it is now."""
        elapsed = self._clock() - self._began
        return self._text if elapsed < _LEAST_S else f"{self._text} ({elapsed:.0f} s)"

    def __rich__(self) -> Text:
        return Text(self.text)


@contextmanager
def repeating(show: Show, every_s: float = REPEATED_S) -> Generator[Show]:
    """Yield `show`, which is given a line again, with its seconds, for as long as it stands.

    From a thread of its own; never two lines at once, and none after the end. An empty line is not
    shown: it ends the one that stands.
    """
    repeater = _Repeater(show, every_s)
    thread = threading.Thread(target=repeater.repeat, name="progress", daemon=True)
    thread.start()
    try:
        yield repeater.tell
    finally:
        repeater.end()
        thread.join()


class _Repeater:
    def __init__(self, show: Show, every_s: float) -> None:
        self._show = show
        self._every_s = every_s
        self._changed = threading.Condition()  # its lock: of the line, and of showing it
        self._line: TimedLine | None = None
        self._is_over = False

    def tell(self, text: str) -> None:
        with self._changed:
            self._line = TimedLine(text) if text else None
            if text:
                self._show(text)
            self._changed.notify()

    def repeat(self) -> None:
        with self._changed:
            while not self._is_over:
                stands = not self._changed.wait(self._every_s)
                if stands and self._line is not None:
                    self._show(self._line.text)

    def end(self) -> None:
        with self._changed:
            self._is_over = True
            self._changed.notify()


class _TimeLeft(TimeRemainingColumn):
    """How long the step will still take; nothing where that cannot be told."""

    def render(self, task: Task) -> Text:
        if task.total is None or task.time_remaining is None:
            return Text()
        return Text(f"about {task.time_remaining:.0f} s left")


OnStep = Callable[[WorkStep], None]


@contextmanager
def step_bar(quiet: bool) -> Generator[OnStep, None, None]:
    """Yield what shows a step; with `quiet` it shows nothing."""
    if quiet:
        yield lambda step: None
    elif sys.stderr.isatty():
        columns = ("{task.description}", BarColumn(24), "{task.fields[amount]}")
        console = terminal_console(stderr=True)
        # Transient: the summary that follows says more.
        with Progress(
            *columns, TimeElapsedColumn(), _TimeLeft(), console=console, transient=True
        ) as bar:
            task = bar.add_task("starting", total=None, amount="")
            yield lambda step: bar.update(
                task,
                description=step.words,
                completed=step.done,
                total=step.total,
                amount=step.amount,
            )
    else:
        yield _said_once()


def _said_once() -> OnStep:
    said: set[str] = set()

    def say(step: WorkStep) -> None:
        if step.line and step.line not in said:
            said.add(step.line)
            click.echo(step.line, err=True)

    return say
