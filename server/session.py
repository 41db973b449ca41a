"""What every sub-command begins with: --problems, --json and the resolved settings."""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click
from rich.console import RenderableType

from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.record import Record

from .console import print_document, print_record, print_view


@dataclass(frozen=True)
class Session:
    """One call of the command line."""

    settings: Settings
    as_json: bool
    """True: exactly one JSON document on stdout and nothing else."""

    def show(self, result: Record | Mapping[str, object], view: Iterable[RenderableType]) -> None:
        """Print `result` as its JSON document, or else `view`, which nothing looks at before."""
        if not self.as_json:
            print_view(view)
        elif isinstance(result, Record):
            print_record(result)
        else:
            print_document(result)


def command_body(
    options: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Turn `body(session, ...) -> exit code` into a click callback.

    Adds --problems and --json and resolves the settings once. The body takes click's parameters by
    their names, or all of them in one record.

    Args:
        options: The record, whose fields carry the names of the parameters; None: none is made.
    """

    def decorate(body: Callable[..., int]) -> Callable[..., int]:
        @click.option(
            "--problems",
            type=click.Path(exists=True, file_okay=False, path_type=Path),
            help="Folder of your own problems, beside the packaged ones (or KOPT_PROBLEMS).",
        )
        @click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
        @functools.wraps(body)
        def callback(problems: Path | None, as_json: bool, **parameters: Any) -> int:
            settings = settings_from_environment()
            if problems is not None:
                settings = replace(settings, problems=problems)
            session = Session(settings, as_json)
            if options is None:
                return body(session, **parameters)
            return body(session, options(**parameters))

        return callback

    return decorate
