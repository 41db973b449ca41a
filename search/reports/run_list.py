"""All runs of a KOPT_HOME as a list: `kopt runs`. A damaged one does not hide the others."""

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
    runs: list[RunSummary] = []
    damaged: list[UnreadableRun] = []
    for folder in run_folders(settings):
        try:
            with view_run(folder.name, settings) as (reader, _):
                runs.append(_summary(reader, folder))
        except ToolError:
            continue
        except KoptError as error:
            why = str(error)
            damaged.append(UnreadableRun(run=folder.name, folder=str(folder), why=why))
    return RunList(runs=tuple(runs), damaged=tuple(damaged))


def _summary(reader: RunReader, folder: Path) -> RunSummary:
    """Return what a list says of a run.

    Raises:
        SetupError: Its values cannot be: the file is damaged.
    """
    try:
        return RunSummary(**run_facts(reader, reader.members(), folder))
    except (ValueError, LookupError, TypeError, ArithmeticError) as error:
        raise unreadable(folder / FILE_NAME, error) from error
