"""All runs of a KOPT_HOME as a list: `kopt runs`. A damaged one does not hide the others."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from pydantic import Field

from kopt.config.errors import KoptError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.record import Record
from kopt.search.store.run_folders import run_folders
from kopt.search.store.run_reader import RunReader
from kopt.search.store.schema import unreadable
from kopt.search.store.store import FILE_NAME

from .run_report import RunFacts, run_facts, view_run


class RunSummary(RunFacts):
    """One run of a list."""

    schema_: Literal["kopt.run-summary/1"] = Field(default="kopt.run-summary/1", alias="schema")


class UnreadableRun(Record):
    """A run whose file is damaged, or of a newer kopt."""

    run: str
    folder: str
    why: str
    """What is wrong with it, and what can be done."""


class RunList(Record):
    """The runs of a KOPT_HOME, newest first."""

    runs: tuple[RunSummary, ...] = ()
    damaged: tuple[UnreadableRun, ...] = ()


def list_runs(settings: Settings) -> RunList:
    """Return every run, those that cannot be read beside the others.

    A folder whose process was killed before it began a run is left out.
    """
    return listed(read_summary(folder, settings) for folder in run_folders(settings))


def listed(found: Iterable[RunSummary | UnreadableRun | None]) -> RunList:
    """Return what was read of runs as a list of them."""
    every = list(found)
    return RunList(
        runs=tuple(one for one in every if isinstance(one, RunSummary)),
        damaged=tuple(one for one in every if isinstance(one, UnreadableRun)),
    )


def read_summary(folder: Path, settings: Settings) -> RunSummary | UnreadableRun | None:
    """Return what a list says of the run in `folder`; None for one that never began."""
    try:
        with view_run(folder.name, settings) as (reader, _):
            return _summary(reader, folder)
    except ToolError:
        return None
    except KoptError as error:
        return UnreadableRun(run=folder.name, folder=str(folder), why=str(error))


def _summary(reader: RunReader, folder: Path) -> RunSummary:
    """Return what a list says of a run.

    Raises:
        SetupError: Its values cannot be: the file is damaged.
    """
    try:
        return RunSummary(**run_facts(reader, reader.members(), folder))
    except (ValueError, LookupError, TypeError, ArithmeticError) as error:
        raise unreadable(folder / FILE_NAME, error) from error
