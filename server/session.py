"""What every sub-command begins with: --problems, --json and the resolved settings."""

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import RenderableType

from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.record import Record

from .console import print_document, print_record, print_view

Options = TypeVar("Options")


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
    options: Callable[..., Options],
) -> Callable[[Callable[[Session, Options], int]], Callable[..., int]]:
    """Turn `body(session, options) -> exit code` into a click callback.

    Adds --problems and --json, resolves the settings once and bundles every other parameter into
    one `options` record, whose fields carry the names of the click parameters.
    """

    def decorate(body: Callable[[Session, Options], int]) -> Callable[..., int]:
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
            return body(Session(settings, as_json), options(**parameters))

        return callback

    return decorate
