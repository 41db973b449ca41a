"""Progress on stderr: a changing line or a bar on a terminal, plain lines elsewhere.

A line that stands for long says for how long, and its time left goes down: a library that builds
itself takes a minute, and whoever waits must see that something moves.
"""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress import BarColumn, Progress, Task, TimeElapsedColumn, TimeRemainingColumn
from rich.text import Text

from kopt.config.callbacks import ignore
from kopt.config.time_left import counted_down, left_words
from kopt.server.views.tables import WorkStep

from .terminal import redraws_stderr, terminal_console

Show = Callable[[str], None]

SILENT_S = 5.0
"""The longest silence in a pipe or a log: what stands is told again, what moves on is told."""
_LEAST_S = 2.0  # a line that stands for less has no time beside it


@contextmanager
def status_line(quiet: bool) -> Generator[Show, None, None]:
    """Yield a function that shows one line of text; with `quiet` it shows nothing."""
    if quiet:
        yield ignore
    elif redraws_stderr():
        console = terminal_console(stderr=True)
        with console.status("") as status:
            yield lambda text: status.update(TimedLine(text))
    else:
        with repeating(lambda text: click.echo(text, err=True)) as repeater:
            yield repeater.tell


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
        return "".join(self._parts())

    def _parts(self) -> tuple[str, str]:
        """Return what is done, and the times: what is left, and how long it has stood."""
        elapsed = self._clock() - self._began
        if elapsed < _LEAST_S:
            return counted_down(self._text, 0.0)
        words, left = counted_down(self._text, elapsed)
        return words, f"{left} ({elapsed:.0f} s)"

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield one line: a narrow terminal cuts off the words, not the times."""
        words, times = self._parts()
        shown = Text(words)
        shown.truncate(max(1, options.max_width - cell_len(times)), overflow="ellipsis")
        yield Text(f"{shown.plain}{times}", no_wrap=True, overflow="crop")


@contextmanager
def repeating(
    show: Show, every_s: float = SILENT_S, is_due: Callable[[str], bool] = lambda text: True
) -> Generator["Repeater"]:
    """Yield what gives `show` the line that stands again, with its seconds, after each silence.

    From a thread of its own; never two lines at once, and none after the end.
    """
    repeater = Repeater(show, every_s, is_due)
    thread = threading.Thread(target=repeater.repeat, name="progress", daemon=True)
    thread.start()
    try:
        yield repeater
    finally:
        repeater.end()
        thread.join()


class Repeater:
    """Holds the line that stands, and shows it again when nothing was shown for long."""

    def __init__(self, show: Show, every_s: float, is_due: Callable[[str], bool]) -> None:
        """Hold no line yet; `is_due` says which lines are shown at once."""
        self._show = show
        self._every_s = every_s
        self._is_due = is_due
        self._changed = threading.Condition()  # its lock: of the line, and of showing it
        self._line: TimedLine | None = None
        self._is_over = False
        self._shown_s = time.monotonic()

    def tell(self, text: str) -> None:
        """Show a line, which stands from now on; one that is not due stands unseen."""
        with self._changed:
            self._line = TimedLine(text) if text else None
            if text and self._is_due(text):
                self._show(text)
                self._shown_s = time.monotonic()

    def stand(self, text: str) -> None:
        """Let a line stand unseen; an empty one only ends the line before it."""
        with self._changed:
            self._line = TimedLine(text) if text else None

    def give_way(self) -> None:
        """Begin the silence anew: something else was shown just now."""
        with self._changed:
            self._shown_s = time.monotonic()

    def repeat(self) -> None:
        """Show what stands after each silence, until the end."""
        with self._changed:
            while not self._is_over:
                left_s = self._shown_s + self._every_s - time.monotonic()
                if left_s > 0:
                    self._changed.wait(left_s)
                    continue
                if self._line is not None:
                    self._show(self._line.text)
                self._shown_s = time.monotonic()

    def end(self) -> None:
        """Show nothing more."""
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
    elif redraws_stderr():
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
        with repeating(lambda text: click.echo(text, err=True)) as repeater:
            yield PlainSteps(repeater.tell, repeater.stand).say


class PlainSteps:
    """Says steps as lines: each line of theirs once, and in a silence how much is done."""

    def __init__(
        self, tell: Show, stand: Show, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Say what is new by `tell`, and by `stand` what may be said in a silence."""
        self._tell, self._stand = tell, stand
        self._clock = clock
        self._said: set[str] = set()
        self._words = ""
        self._began = (0.0, 0)  # when the step was first heard of, and how much was done then

    def say(self, step: WorkStep) -> None:
        """Say how far `step` is, at once if it has a line that is new."""
        now = self._clock()
        if step.words != self._words:
            self._words, self._began = step.words, (now, step.done)
        left = self._left(step, now)
        if step.line and step.line not in self._said:
            self._said.add(step.line)
            self._tell(step.line + left)
        elif step.amount:
            self._stand(f"{step.words}, {step.amount}{left}")

    def _left(self, step: WorkStep, now: float) -> str:
        began_s, before = self._began
        if step.total is None or step.done <= before or now - began_s < _LEAST_S:
            return ""
        return left_words((now - began_s) / (step.done - before) * (step.total - step.done))
