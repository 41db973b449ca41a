"""What is going on right now, on stderr: one changing line on a terminal, plain lines elsewhere."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager

import click
from rich.console import Console

Show = Callable[[str], None]


@contextmanager
def status_line(quiet: bool) -> Generator[Show, None, None]:
    """Yield a function that shows one line of text; with `quiet` it shows nothing."""
    if quiet:
        yield lambda text: None
    elif sys.stderr.isatty():
        console = Console(stderr=True, markup=False, highlight=False)
        with console.status("") as status:
            yield lambda text: status.update(text)
    else:
        yield lambda text: click.echo(text, err=True)
