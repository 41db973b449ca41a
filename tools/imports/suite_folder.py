"""The folder that a benchmark is imported into: suite.yaml, imported.json, problems by group.

suite.yaml is written anew after each task, from all rows of imported.json, so that the folder is a
suite whenever the import ends. One that somebody else wrote is left alone.
"""

import json
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from kopt.config.errors import SetupError, ToolError
from kopt.config.files import sweep_abandoned, write_atomically
from kopt.config.locks import try_lock
from kopt.config.plain_text import plain
from kopt.tools.suite.suite_file import SUITE_FILE

from .imported_task import ImportedSuite, ImportedTask

ROWS_FILE = "imported.json"
_LOCK_FILE = ".import.lock"
_MARK = "# Written by kopt import; what it writes anew is all of this file."
_LONGEST = 400
"""Characters of a reason in suite.yaml."""


@dataclass
class SuiteFolder:
    """A folder that this process alone imports into."""

    path: Path
    format: str
    rows: dict[str, ImportedTask] = field(default_factory=dict[str, ImportedTask])

    def place_of(self, group: str, name: str) -> Path:
        """Return where the problem of a task lies."""
        return self.path / group / name

    def keep(self, row: ImportedTask) -> None:
        """Keep what became of a task, and say it in suite.yaml.

        Raises:
            SetupError: The folder cannot be written.
        """
        self.rows[row.task] = row
        suite = ImportedSuite(format=self.format, tasks=tuple(self.rows.values()))
        try:
            text = suite.model_dump_json(by_alias=True, indent=1) + "\n"
            write_atomically(self.path / ROWS_FILE, text, mode=0o644)
            text = suite_text(self.format, self.rows.values())
            write_atomically(self.path / SUITE_FILE, text, mode=0o644)
        except OSError as error:
            raise SetupError(f"cannot write {self.path}: {error.strerror}") from error


@contextmanager
def importing_into(path: Path, format_name: str) -> Generator[SuiteFolder]:
    """Yield the folder `path` for as long as this process alone imports into it.

    Raises:
        ToolError: Another process does, or what lies there is of another benchmark.
        SetupError: It cannot be written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = try_lock(path / _LOCK_FILE)
    except OSError as error:
        raise SetupError(f"cannot write {path}: {error.strerror}; name another -o DIR") from error
    if lock is None:
        raise ToolError(f"another process imports into {path}: wait for it, or name another -o DIR")
    try:
        sweep_abandoned(path)
        _refuse_foreign_suite(path)
        rows = _read_rows(path, format_name)
        yield SuiteFolder(path, format_name, {row.task: row for row in rows})
    finally:
        lock.release()


def _refuse_foreign_suite(path: Path) -> None:
    file = path / SUITE_FILE
    if file.is_file() and not file.read_text("utf-8", errors="replace").startswith(_MARK):
        raise ToolError(
            f"{file} was not written by kopt import, which would write it anew: name another -o DIR"
        )


def _read_rows(path: Path, format_name: str) -> tuple[ImportedTask, ...]:
    file = path / ROWS_FILE
    if not file.is_file():
        return ()
    try:
        kept = ImportedSuite.model_validate_json(file.read_bytes())
    except (OSError, ValidationError) as error:
        raise ToolError(
            f"{file} is damaged, or of another kopt: remove it, and what lies in {path} is left as"
            " it is"
        ) from error
    if kept.format != format_name:
        raise ToolError(f"{path} holds tasks of {kept.format}: name another -o DIR")
    return kept.tasks


def suite_text(name: str, rows: Iterable[ImportedTask]) -> str:
    """Return suite.yaml for these tasks."""
    return "\n".join(_lines(name, rows)) + "\n"


def _lines(name: str, rows: Iterable[ImportedTask]) -> Iterator[str]:
    yield _MARK
    yield f"name: {name}"
    yield "problems:"
    for row in rows:
        fields = [f"group: {row.group}"]
        if row.outcome == "refused":
            reason = " ".join(plain(row.reason, "").split())[:_LONGEST]
            fields.append(f"{row.mark}: {json.dumps(reason, ensure_ascii=False)}")
        yield f"  {row.task}: {{{', '.join(fields)}}}"
