"""A run's events on stderr: a live view on a terminal, plain lines with their time elsewhere."""

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial

import click
from rich.console import RenderableType
from rich.live import Live

from kopt.config.callbacks import ignore
from kopt.config.time_left import TimeLeft
from kopt.search.records.run_state import Event, EventKind
from kopt.search.runs.run import RunCallbacks

from .progress import MOVES_S, Show, repeating
from .run_lines import event_line, stamped
from .run_watch import RunWatch, run_screen
from .terminal import redraws_stderr, terminal_console

_REDRAWN_PER_S = 4


@contextmanager
def run_progress(quiet: bool, past: Sequence[Event] = ()) -> Generator[RunCallbacks, None, None]:
    """Yield the callbacks of a run; with `quiet` nothing is shown.

    `past` are the events of earlier sessions: what they had found is not told again, but counts.
    """
    watch = RunWatch()
    for event in past:
        watch.see(event)
    if quiet:
        yield RunCallbacks(on_event=ignore, say=ignore)
    elif redraws_stderr():
        with _live(watch) as callbacks:
            yield callbacks
    else:
        with repeating(lambda text: click.echo(f"  {text}", err=True)) as say:
            yield RunCallbacks(on_event=partial(_say, watch, say), say=paced(say))


def waiting_lines(quiet: bool) -> Callable[[str], None]:
    """Return what tells who holds the GPU: a line when the number before this process changes.

    A run asks for the GPU hundreds of times, and each time may wait for the same neighbor.
    """
    told = ""

    def tell(text: str) -> None:
        nonlocal told
        place = text.partition(";")[0]
        if place != told and not quiet:
            told = place
            click.echo(text, err=True)

    return tell


def paced(show: Show, clock: Callable[[], float] = time.monotonic) -> Show:
    """Return `show` that leaves out places of pieces (`3 of 16: ...`) within seconds of a line."""
    told_s = float("-inf")

    def say(text: str) -> None:
        nonlocal told_s
        now = clock()
        if not TimeLeft.is_placed(text) or now - told_s >= MOVES_S:
            told_s = now
            show(text)

    return say


class _Screen:
    """What rich draws again and again, from a thread of its own."""

    def __init__(self, watch: RunWatch) -> None:
        self._watch = watch
        self._lock = threading.Lock()  # of the watch: events come from the main thread

    def see(self, event: Event) -> None:
        with self._lock:
            self._watch.see(event)

    def say(self, text: str) -> None:
        with self._lock:
            self._watch.say(text, time.time_ns() // 1000)

    def __rich__(self) -> RenderableType:
        with self._lock:
            return run_screen(self._watch, time.time_ns() // 1000)


@contextmanager
def _live(watch: RunWatch) -> Generator[RunCallbacks, None, None]:
    screen = _Screen(watch)
    console = terminal_console(stderr=True)
    with Live(screen, console=console, refresh_per_second=_REDRAWN_PER_S) as live:

        def follow(event: Event) -> None:
            screen.see(event)
            if event.kind in (EventKind.EVALUATION_REQUEUED, EventKind.RUN_PAUSED):
                live.console.print(event_line(event, watch.best))

        yield RunCallbacks(on_event=follow, say=screen.say)


def _say(watch: RunWatch, say: Show, event: Event) -> None:
    say("")  # what it did before this event is over
    line = event_line(event, watch.best)
    watch.see(event)
    if line is not None:
        click.echo(stamped(event, line), err=True)
