"""What became of KernelBench's tasks: a record a task on disk, the table and the summary of all."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

from markdown_tables import grid
from pydantic import ValidationError

from kopt.config.files import content_hash, write_atomically
from kopt.kernels.record import Record

Outcome = Literal["passed", "imported", "refused", "failed"]
"""`imported` is what no check has judged yet; `refused` what the importer refuses by name."""

_FOLDERS = ("config", "kernels", "tools")
_APART = ("kernels/problems/", "tools/docs/", "tools/gpu/", "tools/selftest/", "tools/suite/")
"""What no import and no check on the simulator runs."""
_SAID = 500
"""Characters of a reason that are kept."""
_SUFFIXES = (".py", ".h", ".cuh", ".cpp", ".yaml")


class Row(Record):
    """One task."""

    level: int
    number: int
    name: str
    """The name of the problem that the task becomes."""
    key: str
    """Hash of kopt's sources and of the task's file."""
    outcome: Outcome
    import_s: float = 0.0
    import_cpu_s: float = 0.0
    check_s: float = 0.0
    check_cpu_s: float = 0.0
    launches: int = 0
    reason: str = ""
    """Why it is refused or failed."""
    timed_out: bool = False
    """Whether a limit of time ended it, which says as much of this machine: it is tried again."""

    def ended(self, outcome: Outcome, reason: str = "") -> "Row":
        """Return the row with what became of the task, and why in at most some lines."""
        said = " ".join(reason.split())[:_SAID]
        return self.model_copy(update={"outcome": outcome, "reason": said})

    @property
    def is_imported(self) -> bool:
        """Whether it became a problem with a kernel."""
        return self.launches > 0


def sources_digest(root: Path) -> str:
    """Return a hash of the files of kopt that decide what an import and a check come to."""
    parts: list[str | bytes] = []
    for folder in _FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            place = path.relative_to(root).as_posix()
            if path.suffix in _SUFFIXES and not place.startswith(_APART):
                parts += (place, path.read_bytes())
    return content_hash(parts)


def row_path(output: Path, name: str) -> Path:
    """Return where a task's row is kept."""
    return output / "rows" / f"{name}.json"


def write_row(output: Path, row: Row) -> None:
    """Keep a row, in place of an older one."""
    path = row_path(output, row.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, row.model_dump_json(indent=1).encode() + b"\n")


def read_row(output: Path, name: str) -> Row | None:
    """Return the row that is kept; None where there is none that can be read."""
    try:
        return Row.model_validate_json(row_path(output, name).read_bytes())
    except (OSError, ValidationError):
        return None


def table(rows: Iterable[Row]) -> str:
    """Return all rows as a Markdown table."""
    columns = ("level", "id", "task", "launches", "import s", "check s", "CPU s", "outcome")
    lines = [
        (
            str(row.level),
            str(row.number),
            row.name.partition("_")[2].partition("_")[2],
            str(row.launches or ""),
            f"{row.import_s:.1f}",
            f"{row.check_s:.1f}" if row.check_s else "",
            f"{row.import_cpu_s + row.check_cpu_s:.1f}",
            row.outcome + (f": {row.reason}" if row.reason else ""),
        )
        for row in sorted(rows, key=lambda one: (one.level, one.number))
    ]
    return grid(columns, lines, ("task", "outcome")) + "\n"


def summary(rows: Sequence[Row], missing: int, older: int) -> str:
    """Return how many tasks came to what, by level and in all, and what it took.

    Args:
        rows: Of the tasks that were asked for.
        missing: Tasks without a row.
        older: Rows that were made with other sources of kopt.
    """
    columns = ("level", "tasks", "imported", "passed", "refused by name", "failed", "CPU s")
    levels = sorted({row.level for row in rows})
    lines = [_counted(f"{level}", [r for r in rows if r.level == level]) for level in levels]
    text = grid(columns, [*lines, _counted("all", rows)], ()) + "\n"
    if missing:
        text += f"\n{missing} tasks were not tried\n"
    if older:
        text += f"\n{older} rows are of other sources of kopt than these\n"
    return text


def _counted(head: str, rows: Sequence[Row]) -> tuple[str, ...]:
    outcomes = Counter(row.outcome for row in rows)
    cpu_s = sum(row.import_cpu_s + row.check_cpu_s for row in rows)
    counts = (
        len(rows),
        sum(row.is_imported for row in rows),
        *(outcomes[one] for one in ("passed", "refused", "failed")),
    )
    return (head, *map(str, counts), f"{cpu_s:,.0f}")


def write_table(output: Path, rows: Sequence[Row], closing: str) -> Path:
    """Write table.md and return where it is."""
    path = output / "table.md"
    write_atomically(path, f"{table(rows)}\n{closing}".encode())
    return path


def checkout_of(given: str | None) -> Path:
    """Return the folder that holds level1, level2 and level3.

    Raises:
        ValueError: KERNELBENCH is not set, or is no checkout.
    """
    hint = "KERNELBENCH=FOLDER, a checkout of https://github.com/ScalingIntelligence/KernelBench"
    if not given:
        raise ValueError(f"KERNELBENCH is not set: give {hint}")
    root = Path(given).absolute()
    root = root / "KernelBench" if (root / "KernelBench").is_dir() else root
    if not (root / "level1").is_dir():
        raise ValueError(f"KERNELBENCH={given} has no folder level1{os.sep}: give {hint}")
    return root
