"""Runs that are removed, and with them the artifacts that no other run refers to.

A run that a process drives is never removed. Artifacts are shared by all runs of a KOPT_HOME, and a
run under way may be about to name one: they go only while nobody else uses the home, else with a
later removal.
"""

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Literal

from pydantic import Field

from kopt.config.errors import KoptError, ToolError
from kopt.config.files import folder_size, remove_folder
from kopt.config.home_use import home_alone
from kopt.config.settings import Settings
from kopt.kernels.record import Record
from kopt.search.reports.run_report import view_run
from kopt.search.storage.artifacts import artifacts_of
from kopt.search.store.run_folders import find_run, run_folders
from kopt.search.store.run_lock import LockClaim, RunLock, is_run_locked
from kopt.search.store.schema import open_viewer
from kopt.search.store.store import FILE_NAME


@dataclass(frozen=True)
class RunSelection:
    """Which runs are to be removed."""

    names: tuple[str, ...] = ()
    """Ids, or unmistakable parts of them."""
    older_than: timedelta | None = None
    """Those begun longer ago."""
    keep: int | None = None
    """Those beyond so many newest."""


class RemovedRun(Record):
    """A run that is removed, or would be."""

    run: str
    kernel: str
    """Empty where the run cannot be read."""
    status: str
    size_bytes: int


class KeptRun(Record):
    """A run that was selected and stays."""

    run: str
    why: str


class RunRemoval(Record):
    """What a removal comes to."""

    schema_: Literal["kopt.runs-removed/1"] = Field(default="kopt.runs-removed/1", alias="schema")
    status: Literal["passed"] = "passed"
    is_done: bool
    """False: this is what it would remove."""
    runs: tuple[RemovedRun, ...]
    kept: tuple[KeptRun, ...] = ()
    freed_bytes: int
    """Folders, and artifacts once they are removed."""
    artifacts: int = 0
    """How many artifacts went."""
    artifacts_stay: str | None = None
    """Why artifacts of removed runs stay for now."""


def plan_removal(selection: RunSelection, settings: Settings, now: datetime) -> RunRemoval:
    """Return what would be removed.

    Raises:
        ToolError: Nothing is selected, a name fits no run or several, or a named run is under way.
    """
    folders = _selected(selection, settings, now)
    kept = [KeptRun(run=one.name, why="is running") for one in folders if is_run_locked(one)]
    under_way = {one.run for one in kept}
    named = {find_run(name, settings).name for name in selection.names}
    if blocked := sorted(named & under_way):
        raise ToolError(f"{blocked[0]} is running: stop it first (Ctrl-C), nothing was removed")
    runs = tuple(_described(one, settings) for one in folders if one.name not in under_way)
    freed = sum(one.size_bytes for one in runs)
    return RunRemoval(is_done=False, runs=runs, kept=tuple(kept), freed_bytes=freed)


def remove_runs(plan: RunRemoval, settings: Settings) -> RunRemoval:
    """Remove the runs of `plan`, but for those that a process has taken up since."""
    removed: list[RemovedRun] = []
    kept = list(plan.kept)
    for one in plan.runs:
        folder = settings.runs / one.run
        try:
            with RunLock(folder, LockClaim("kopt runs rm")):
                remove_folder(folder)
        except ToolError:
            kept.append(KeptRun(run=one.run, why="is running"))
        except OSError as error:
            kept.append(KeptRun(run=one.run, why=f"cannot be removed ({error.strerror})"))
        else:
            if folder.exists():
                kept.append(KeptRun(run=one.run, why="cannot be removed: its folder is read-only"))
            else:
                removed.append(one)
    count, size_bytes, why = _collect(settings)
    return RunRemoval(
        is_done=True,
        runs=tuple(removed),
        kept=tuple(kept),
        freed_bytes=sum(one.size_bytes for one in removed) + size_bytes,
        artifacts=count,
        artifacts_stay=why,
    )


def _selected(selection: RunSelection, settings: Settings, now: datetime) -> list[Path]:
    """Return the folders that are selected, newest first."""
    every = run_folders(settings)
    if selection.names:
        if selection.older_than is not None or selection.keep is not None:
            raise ToolError("name runs, or choose them by --older-than and --keep: not both")
        names = {find_run(name, settings).name for name in selection.names}
        return [folder for folder in every if folder.name in names]
    if selection.older_than is None and selection.keep is None:
        raise ToolError("name runs (kopt runs), or choose them by --older-than 30d or --keep N")
    chosen = every[selection.keep or 0 :]
    if selection.older_than is None:
        return chosen
    before = f"run-{(now - selection.older_than).astimezone(UTC):%Y%m%d-%H%M%S}"
    return [folder for folder in chosen if folder.name < before]


def _described(folder: Path, settings: Settings) -> RemovedRun:
    size_bytes, _files = folder_size(folder)
    try:
        with view_run(folder.name, settings) as (reader, _):
            state = reader.state()
            kernel, status = state.settings.kernel, str(state.status)
    except (KoptError, ValueError, LookupError):  # a damaged run can be removed, too
        kernel, status = "", "cannot be read"
    return RemovedRun(run=folder.name, kernel=kernel, status=status, size_bytes=size_bytes)


def _collect(settings: Settings) -> tuple[int, int, str | None]:
    """Remove what no run names; return how many, their bytes, and why that has to wait."""
    with home_alone(settings.home) as is_alone:
        if not is_alone:
            return 0, 0, "another kopt uses this KOPT_HOME: the next removal takes them"
        try:
            named = _named(run_folders(settings))
        except (KoptError, sqlite3.Error) as error:
            return 0, 0, f"a run cannot be read ({error})"
        return *_removed_files(artifacts_of(settings.home).root, named), None


def _named(folders: Iterable[Path]) -> set[str]:
    named: set[str] = set()
    for folder in folders:
        with closing(open_viewer(folder / FILE_NAME)) as connection:
            named.update(sha for (sha,) in connection.execute("SELECT sha FROM blob"))
    return named


def _removed_files(root: Path, named: set[str]) -> tuple[int, int]:
    files: Sequence[Path] = [path for path in root.glob("??/*") if path.name not in named]
    size_bytes = sum(path.stat().st_size for path in files)
    for path in files:
        path.unlink()
    return len(files), size_bytes
