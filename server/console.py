"""Writing to stdout: a record as JSON, or views as text. Nothing else writes there."""

import json
import shutil
import sys
from collections.abc import Iterable, Mapping

import click
from rich.console import Console, RenderableType

from kopt.kernels.record import Record

PIPE_WIDTH = 160  # wide enough that tables keep whole lines for grep


def print_record(record: Record) -> None:
    """Print `record` as one JSON document."""
    print_document(json.loads(record.model_dump_json(by_alias=True)))


def print_document(document: Mapping[str, object]) -> None:
    """Print `document` as one JSON document, in ASCII: a terminal would obey other controls."""
    click.echo(json.dumps(document))


def print_view(view: Iterable[RenderableType]) -> None:
    """Print the parts of `view` in order: coloured on a terminal, plain and wide elsewhere."""
    is_terminal = sys.stdout.isatty()
    console = Console(
        width=shutil.get_terminal_size().columns if is_terminal else PIPE_WIDTH,
        force_terminal=is_terminal,
        markup=False,
        highlight=False,
        emoji=False,
    )
    with console.capture() as captured:
        for part in view:
            console.print(part)
    text = captured.get()
    if not is_terminal:  # rich fills table cells up with blanks
        text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    click.echo(text, nl=False)
