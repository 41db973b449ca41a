"""The results of a suite on disk: one file a task, whole or absent, written by one process.

`<results>/<set>/set.json` says what was run, `<set>/<task>.json` what became of each task. Files
are renamed into their places, so that `kill -9` costs the tasks under way and no other.
"""

import os
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from kopt.config.errors import SetupError, ToolError
from kopt.config.files import sweep_abandoned, write_atomically
from kopt.config.locks import try_lock

from .task_result import ResultSet, SuiteTaskResult

SET_FILE = "set.json"
_LOCK_FILE = "suite.lock"
RESULTS = "results"
"""The folder of results in a suite's own, unless another is named."""


@dataclass(frozen=True)
class ResultsFolder:
    """The results of one set."""

    path: Path
    set: ResultSet

    def read(self, task: str) -> SuiteTaskResult | None:
        """Return the result of a task; None where there is none that this kopt can read."""
        try:
            return SuiteTaskResult.model_validate_json((self.path / f"{task}.json").read_bytes())
        except (OSError, ValidationError):
            return None  # it is made again

    def read_all(self, tasks: Iterable[str]) -> dict[str, SuiteTaskResult]:
        """Return the results of those of `tasks` that have one."""
        found = ((task, self.read(task)) for task in tasks)
        return {task: result for task, result in found if result is not None}

    def write(self, result: SuiteTaskResult) -> None:
        """Write the result of one task over an older one.

        Raises:
            SetupError: The folder cannot be written.
        """
        text = result.model_dump_json(by_alias=True, indent=1)
        try:
            write_atomically(self.path / f"{result.task}.json", text, mode=0o644)
        except OSError as error:
            raise _unwritable(self.path, error) from error


@contextmanager
def writing_results(results: Path, which: ResultSet) -> Generator[ResultsFolder]:
    """Yield the folder of a set for as long as this process alone writes to it.

    Raises:
        ToolError: Another process works on it, or what lies there is of another set.
        SetupError: It cannot be written.
    """
    folder = results / which.name
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = try_lock(folder / _LOCK_FILE)
    except OSError as error:
        raise _unwritable(folder, error) from error
    if lock is None:
        holder = (folder / _LOCK_FILE).read_bytes()[:200].decode(errors="replace").strip()
        raise ToolError(
            f"{folder} is being worked on by {holder or 'another process'}: wait for it or stop it;"
            " what it has finished is kept"
        )
    try:
        lock.describe(f"process {os.getpid()} (kopt suite run)\n")
        sweep_abandoned(folder)
        _keep_set(folder, which)
        yield ResultsFolder(folder, which)
    finally:
        lock.release()


def _keep_set(folder: Path, which: ResultSet) -> None:
    path = folder / SET_FILE
    if path.is_file():
        if _read_set(path) == which:
            return
        raise ToolError(
            f"{folder} holds results of another suite or level: name another folder, --results DIR,"
            " or remove this one"
        )
    try:
        write_atomically(path, which.model_dump_json(by_alias=True, indent=1), mode=0o644)
    except OSError as error:
        raise _unwritable(folder, error) from error


def find_results(results: Path, name: str | None) -> ResultsFolder:
    """Return the results of a set, of the only one without a name.

    Raises:
        ToolError: There are none, several without a name, or none of that name.
        SetupError: The set was written by another kopt.
    """
    found = {path.parent.name: path for path in sorted(results.glob(f"*/{SET_FILE}"))}
    if not found:
        raise ToolError(f"no results lie in {results}: kopt suite run makes them")
    if name is None and len(found) > 1:
        raise ToolError(
            f"{results} holds {len(found)} sets of results: name one, --set NAME:"
            f" {', '.join(found)}"
        )
    chosen = next(iter(found)) if name is None else name
    if chosen not in found:
        raise ToolError(f"no set of results is called {chosen!r} in {results}: {', '.join(found)}")
    return ResultsFolder(found[chosen].parent, _read_set(found[chosen]))


def _read_set(path: Path) -> ResultSet:
    try:
        return ResultSet.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise SetupError(f"{path} cannot be read: damaged, or of another kopt") from error


def _unwritable(folder: Path, error: OSError) -> SetupError:
    return SetupError(
        f"cannot write {folder}: {error.strerror}; name a folder that you can write, --results DIR"
    )
