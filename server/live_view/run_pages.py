"""What a live view shows, read from the stores of runs: only what has changed is read anew.

The stores are opened read-only, as `kopt runs` does: the process that drives a run is not
disturbed, and need not know.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from kopt.config.settings import Settings
from kopt.search.records.run_state import Event
from kopt.search.reports.contents import Contents, read_contents
from kopt.search.reports.run_list import RunList, RunSummary, UnreadableRun, listed, read_summary
from kopt.search.reports.run_report import view_run
from kopt.search.store.run_folders import find_run, run_folders
from kopt.search.store.run_lock import is_run_locked
from kopt.search.store.store import FILE_NAME
from kopt.server.run_lines import BestSoFar, event_line, stamped

Stamp = tuple[object, ...]
"""Equal while nothing was written."""
_KEPT = 8
"""Runs whose contents are kept."""
_EVENTS = 12
"""Events that are shown."""


@dataclass(frozen=True)
class RunNow:
    """One run as its store has it at this moment."""

    contents: Contents
    lines: tuple[str, ...]
    """What happened last, oldest first."""


class RunPages:
    """The runs of a KOPT_HOME; safe to use from several threads."""

    def __init__(self, settings: Settings) -> None:
        """Show the runs in the home of `settings`."""
        self._settings = settings
        self._reading = Lock()
        self._runs: OrderedDict[str, tuple[Stamp, RunNow]] = OrderedDict()
        self._summaries: dict[Path, tuple[Stamp, RunSummary | UnreadableRun | None]] = {}

    @property
    def home(self) -> Path:
        """Where runs are kept."""
        return self._settings.runs

    def stamp_of(self, runs: Sequence[str]) -> Stamp:
        """Return a stamp of these runs; of all where none is named.

        Raises:
            ToolError: There is no such run.
        """
        if runs:
            return tuple(_stamp(find_run(run, self._settings)) for run in runs)
        return tuple((folder.name, *_stamp(folder)) for folder in run_folders(self._settings))

    def run(self, run: str) -> RunNow:
        """Return a run as it is now.

        Raises:
            ToolError: There is no such run, or none that began.
            KoptError: It cannot be read.
        """
        with self._reading:
            folder = find_run(run, self._settings)
            stamp = (*_stamp(folder), is_run_locked(folder))  # before it is read
            kept = self._runs.get(folder.name)
            if kept is None or kept[0] != stamp:
                kept = self._runs[folder.name] = stamp, self._read(folder.name)
            self._runs.move_to_end(folder.name)
            if len(self._runs) > _KEPT:
                self._runs.popitem(last=False)
            return kept[1]

    def list(self) -> RunList:
        """Return all runs, newest first, those that cannot be read beside the others."""
        with self._reading:
            return listed(self._summary(folder) for folder in run_folders(self._settings))

    def _read(self, run: str) -> RunNow:
        with view_run(run, self._settings) as (reader, folder):
            contents = read_contents(reader, folder, self._settings)
            return RunNow(contents, _last_lines(reader.events()))

    def _summary(self, folder: Path) -> RunSummary | UnreadableRun | None:
        stamp = (*_stamp(folder), is_run_locked(folder))
        kept = self._summaries.get(folder)
        if kept is None or kept[0] != stamp:
            kept = self._summaries[folder] = stamp, read_summary(folder, self._settings)
        return kept[1]


def _stamp(folder: Path) -> Stamp:
    """Return when and to what size the files of a run's store were last written."""
    return tuple(_written(folder / name) for name in (FILE_NAME, f"{FILE_NAME}-wal"))


def _written(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    # A reader makes an empty log where there is none: nobody has written.
    return (found.st_mtime_ns, found.st_size) if found.st_size else None


def _last_lines(events: Sequence[Event]) -> tuple[str, ...]:
    """Return the last events that say something, as `kopt run` told them."""
    best = BestSoFar()
    lines = ((event, event_line(event, best)) for event in events)
    told = [stamped(event, line) for event, line in lines if line is not None]
    return tuple(told[-_EVENTS:])
