"""One call of the command line: its settings, and what it prints on stdout: JSON, or a view.

Nothing else writes to stdout.
"""

import functools
import json
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import RenderableType
from rich.text import Text

from kopt.config.errors import KoptError
from kopt.config.home_use import deleted_caches_told, using_home
from kopt.config.settings import Settings, settings_from_environment
from kopt.config.termination import terminated_as_by_ctrl_c
from kopt.kernels.record import Record
from kopt.tools.facts.next_command import NextCommand

from .starting import program_name, wipe
from .terminal import terminal_console

Result = TypeVar("Result", bound=Record)
PIPE_WIDTH = 160  # wide enough that tables keep whole lines for grep


@dataclass(frozen=True)
class Session:
    """One call of the command line."""

    settings: Settings
    as_json: bool
    """True: exactly one JSON document on stdout and nothing else."""
    problems: Path | None = None
    """What --problems named in this call."""

    @property
    def without_models(self) -> "Session":
        """Return the same call as if there were no key."""
        return replace(self, settings=replace(self.settings, claude=None))

    def show(
        self,
        result: Record | Mapping[str, object],
        view: Iterable[RenderableType],
        *then: NextCommand | None,
    ) -> None:
        """Print `result` as its JSON document, or else `view`, which nothing looks at before.

        Behind the view come the commands that take the user on, each on an unwrapped line: the
        first is the last line, `Next:`, and what may follow it stands above as `Later:`.
        """
        if not self.as_json:
            print_view(view)
            following = [one for one in then if one is not None]
            for one in following[1:]:
                click.echo(one.line(self.problems, program_name(), "Later"))
            for one in following[:1]:
                click.echo(one.line(self.problems, program_name()))
        elif isinstance(result, Record):
            print_record(result)
        else:
            print_document(result)

    def show_growing(
        self,
        make: Callable[[Callable[[Result], None]], Result],
        view: Callable[[Result], Iterable[RenderableType]],
        amount: Callable[[Result], str],
        then: Callable[[Result], NextCommand | None] = lambda _: None,
    ) -> Result | None:
        """Print the result of minutes of work, or as much of it as there is when the work ends.

        Args:
            make: Does the work; is given what keeps the result so far.
            view: Of a result.
            amount: How much of the work a result has.
            then: The command that takes the user on from a whole result.

        Returns:
            The whole result; None after Ctrl-C or SIGTERM.

        Raises:
            KeyboardInterrupt: Ctrl-C or SIGTERM before there was any result.
            KoptError: The work's own, once the result so far is printed.
        """
        kept: list[Result] = []
        try:
            with terminated_as_by_ctrl_c():
                result = make(kept.append)
        except KeyboardInterrupt:
            if not kept:
                raise
            self.show(kept[-1], view(kept[-1]))
            click.echo(f"kopt: interrupted after {amount(kept[-1])}", err=True)
            return None
        except KoptError:  # the disk is full, say: what was done is not lost with it
            if kept and not self.as_json:  # there one document tells of the error
                print_view(view(kept[-1]))
            raise
        self.show(result, view(result), then(result))
        return result


def command_body(
    options: Callable[..., Any] | None = None, *, uses_home: bool = True
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Turn `body(session, ...) -> exit code` into a click callback.

    Adds --problems and --json and resolves the settings once. The body takes click's parameters by
    their names, or all of them in one record.

    Args:
        options: The record, whose fields carry the names of the parameters; None: none is made.
        uses_home: Whether what KOPT_HOME holds must stay while the command runs.
    """

    def decorate(body: Callable[..., int]) -> Callable[..., int]:
        @click.option(
            "--problems",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            multiple=True,
            callback=_one_folder,
            help="Folder of your own problems, beside the packaged ones (or KOPT_PROBLEMS).",
        )
        @click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
        @functools.wraps(body)
        def callback(problems: Path | None, as_json: bool, **parameters: Any) -> int:
            wipe()
            settings = settings_from_environment()
            if problems is not None:
                settings = replace(settings, problems=problems)
            session = Session(settings, as_json, problems)
            given = (session,) if options is None else (session, options(**parameters))
            is_used = using_home(settings.home) if uses_home else nullcontext()
            with is_used, deleted_caches_told(settings.home):
                return body(*given, **(parameters if options is None else {}))

        return callback

    return decorate


def _one_folder(_: click.Context, __: click.Parameter, folders: tuple[Path, ...]) -> Path | None:
    if len(folders) > 1:
        raise click.BadParameter("it is given twice: name one folder that holds all your problems")
    return folders[0].absolute() if folders else None


def print_record(record: Record) -> None:
    """Print `record` as one JSON document."""
    print_document(json.loads(record.model_dump_json(by_alias=True)))


def print_document(document: Mapping[str, object]) -> None:
    """Print `document` as one JSON document, in ASCII: a terminal would obey other controls."""
    click.echo(json.dumps(document))


def print_view(view: Iterable[RenderableType]) -> None:
    """Print the parts of `view` in order: coloured on a terminal, plain and wide elsewhere.

    Sentences are wrapped on a terminal alone: a pipe leads to grep, which reads line by line.
    """
    is_terminal = sys.stdout.isatty()
    console = terminal_console(
        width=shutil.get_terminal_size().columns if is_terminal else PIPE_WIDTH,
        force_terminal=is_terminal,
    )
    with console.capture() as captured:
        for part in view:
            console.print(part, soft_wrap=isinstance(part, Text) and not is_terminal)
    text = captured.get()
    if not is_terminal:  # rich fills table cells up with blanks
        text = "".join(f"{line.rstrip()}\n" for line in text.splitlines())
    click.echo(text, nl=False)
