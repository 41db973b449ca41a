"""A run's events on stderr: a live view on a terminal, plain lines with their time elsewhere."""

import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import click
from rich.console import Console, RenderableType
from rich.live import Live

from kopt.search.store.run_records import Event, EventKind

from .run_lines import event_line, stamped
from .run_screen import run_screen
from .run_watch import RunWatch

OnEvent = Callable[[Event], None]

_REDRAWN_PER_S = 4


@contextmanager
def run_progress(quiet: bool, past: Sequence[Event] = ()) -> Generator[OnEvent, None, None]:
    """Yield the subscriber of a run's events; with `quiet` it shows nothing.

    `past` are the events of earlier sessions: what they had found is not told again, but counts.
    """
    watch = RunWatch()
    for event in past:
        watch.see(event)
    if quiet:
        yield lambda event: None
    elif sys.stderr.isatty():
        with _live(watch) as on_event:
            yield on_event
    else:
        yield lambda event: _say(event, watch)


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


class _Screen:
    """What rich draws again and again, from a thread of its own."""

    def __init__(self, watch: RunWatch) -> None:
        self._watch = watch
        self._lock = threading.Lock()  # of the watch: events come from the main thread

    def see(self, event: Event) -> None:
        with self._lock:
            self._watch.see(event)

    def __rich__(self) -> RenderableType:
        with self._lock:
            return run_screen(self._watch, time.time_ns() // 1000)


@contextmanager
def _live(watch: RunWatch) -> Generator[OnEvent, None, None]:
    screen = _Screen(watch)
    console = Console(stderr=True, markup=False, highlight=False, emoji=False)
    with Live(screen, console=console, refresh_per_second=_REDRAWN_PER_S) as live:

        def follow(event: Event) -> None:
            screen.see(event)
            if event.kind in (EventKind.EVALUATION_REQUEUED, EventKind.RUN_PAUSED):
                live.console.print(event_line(event, watch.best))

        yield follow


def _say(event: Event, watch: RunWatch) -> None:
    line = event_line(event, watch.best)
    watch.see(event)
    if line is not None:
        click.echo(stamped(event, line), err=True)
