"""A run's events on stderr: a bar with the best so far on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from kopt.search.run_records import Event, EventKind

OnEvent = Callable[[Event], None]


class BestSoFar:
    """The best of the quick evaluations that passed, in words: by speedup, else by latency."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self.cost: float | None = None
        self.text = "nothing has passed yet"

    def recall(self, events: Iterable[Event]) -> None:
        """Take everything that was evaluated before into account."""
        for event in events:
            if event.kind is EventKind.EVALUATION_DONE and event.data["level"] == "quick":
                self.see(event.data)

    def see(self, data: dict[str, Any]) -> None:
        """Take one EVALUATION_DONE into account."""
        speedup = data["speedup"]
        cost = 1.0 / speedup if speedup else data["latency_us"]
        if cost is None or (self.cost is not None and cost >= self.cost):
            return
        self.cost = cost
        self.text = f"best{_time_words(data)} (#{data['candidate']})"


@contextmanager
def run_progress(quiet: bool) -> Generator[OnEvent, None, None]:
    """Yield the subscriber of a run's events; with `quiet` it shows nothing."""
    if quiet:
        yield lambda event: None
    elif sys.stderr.isatty():
        with _bar() as bar:
            yield _follow_on(bar)
    else:
        yield _follow_in_lines()


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


def _bar() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[best]}"),
        console=Console(stderr=True, markup=False, highlight=False),
    )


def _follow_on(bar: Progress) -> OnEvent:
    best = BestSoFar()
    task = bar.add_task("compiling and checking", total=None, best=best.text)

    def follow(event: Event) -> None:
        data = event.data
        if event.kind is EventKind.ROUND_STARTED:
            bar.update(task, description=f"round {data['round']}")
        elif event.kind is EventKind.FINAL_CHECK:
            bar.update(task, description=f"full check of #{data['candidate']}")
        elif event.kind is EventKind.EVALUATION_DONE:
            if data["level"] == "quick":
                best.see(data)
                bar.update(task, completed=data["done"], total=data["known"], best=best.text)
        elif event.kind is EventKind.EVALUATION_REQUEUED:
            bar.console.print(f"#{data['candidate']} is tried again: {data['reason']}")

    return follow


def _follow_in_lines() -> OnEvent:
    best = BestSoFar()

    def follow(event: Event) -> None:
        line = event_line(event, best)
        if line is not None:
            click.echo(line, err=True)

    return follow


def event_line(event: Event, best: BestSoFar) -> str | None:
    """Return the line that tells `event`; None for an event that says nothing to a reader."""
    data = event.data
    match event.kind:
        case EventKind.RUN_STARTED:
            return f"{data['run']}: {data['kernel']}"
        case EventKind.RUN_RESUMED:
            return f"resumed; {data['requeued']} evaluations that were under way begin again"
        case EventKind.ROUND_STARTED:
            plural = "" if data["candidates"] == 1 else "s"
            return f"round {data['round']}: {data['candidates']} candidate{plural}"
        case EventKind.EVALUATION_REQUEUED:
            return f"  #{data['candidate']} is tried again: {data['reason']}"
        case EventKind.FINAL_CHECK:
            return f"full check of #{data['candidate']}"
        case EventKind.EVALUATION_DONE:
            return _done_line(data, best)
        case _:
            return None


def _done_line(data: dict[str, Any], best: BestSoFar) -> str:
    if data["level"] == "full":
        return f"  #{data['candidate']} {data['status']}: {data['summary']}"
    best.see(data)
    return (
        f"  {data['done']}/{data['known']} #{data['candidate']} {data['status']}"
        f"{_time_words(data)}; {best.text}"
    )


def _time_words(data: dict[str, Any]) -> str:
    """Return ` 2.413 us measured, 1.213x flashinfer (PDL on)`; empty where nothing is known."""
    latency_us = data["latency_us"]
    time = "" if latency_us is None else f" {latency_us:.3f} us {data['provenance']}"
    ratio = "" if not data["speedup"] else f", {data['speedup']:.3f}x {data['baseline']}"
    return f"{time}{ratio}"
