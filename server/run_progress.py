"""A run's events on stderr: a live view on a terminal, plain lines with their time elsewhere."""

import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import click
from rich.console import RenderableType
from rich.live import Live

from kopt.config.callbacks import ignore
from kopt.config.time_left import TimeLeft
from kopt.search.records.run_state import Event, EventKind
from kopt.search.runs.run import RunCallbacks

from .progress import SILENT_S, Repeater, repeating
from .run_lines import event_line, stamped
from .run_watch import RunWatch, run_screen, under_way, work_words
from .terminal import redraws_stderr, terminal_console

_REDRAWN_PER_S = 4
_ENDINGS = (EventKind.RUN_PAUSED, EventKind.RUN_FINISHED)


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
        told = repeating(lambda text: click.echo(f"  {text}", err=True), is_due=spaced_places())
        with told as repeater:
            writer = RunLineWriter(watch, repeater)
            yield RunCallbacks(on_event=writer.see, say=writer.say)


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


def spaced_places(clock: Callable[[], float] = time.monotonic) -> Callable[[str], bool]:
    """Return what refuses the place of a piece (`3 of 16: ...`) within seconds of a line."""
    told_s = float("-inf")

    def is_due(text: str) -> bool:
        nonlocal told_s
        now = clock()
        if TimeLeft.is_placed(text) and now - told_s < SILENT_S:
            return False
        told_s = now
        return True

    return is_due


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


class RunLineWriter:
    """Writes events as lines; where candidates take long, how many there are and the time left."""

    def __init__(self, watch: RunWatch, repeater: Repeater) -> None:
        """Write of a run that stands as `watch`; `repeater` holds what is told in a silence."""
        self._watch, self._repeater = watch, repeater
        self._counted_us = 0
        self._was_said = False  # what stands, by the run itself

    def say(self, text: str) -> None:
        """Tell what goes on besides the events; it stands, until one has a line of its own."""
        self._was_said = True
        self._repeater.tell(text)

    def see(self, event: Event) -> None:
        """Write the line of one event; what is under way after it stands, until the next."""
        line = event_line(event, self._watch.best)
        self._watch.see(event)
        if line is not None:
            self._write(event, line)
        if event.kind is EventKind.ROUND_STARTED:
            self._counted_us = event.at_us
        is_due = event.at_us - self._counted_us >= SILENT_S * 1e6
        if event.kind is EventKind.EVALUATION_DONE and is_due and self._watch.left_words:
            self._counted_us = event.at_us
            self._write(event, f"  {work_words(self._watch)}")
        if self._was_said and event.kind is EventKind.EVALUATION_STARTED:
            return  # what it waits for may have been told already
        self._was_said = False
        self._repeater.stand("" if event.kind in _ENDINGS else under_way(self._watch))

    def _write(self, event: Event, line: str) -> None:
        self._repeater.give_way()
        click.echo(stamped(event, line), err=True)
