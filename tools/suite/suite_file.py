"""What suite.yaml says: which problems of a folder are tasks, and what is known of each.

A suite is a folder with suite.yaml and problem folders in it, directly or one folder deeper: that
folder is then the group of its problems. Nothing here reads a problem or a candidate.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, model_validator

from kopt.config.errors import ToolError
from kopt.config.near_matches import near_matches
from kopt.kernels.problem_loader import FILE_NAME as PROBLEM_FILE
from kopt.kernels.record import Record
from kopt.kernels.strict_yaml import YamlError, load_yaml
from kopt.kernels.yaml_records import read_record
from kopt.kernels.yaml_types import NAMED, Flag, Mistake, Text, YamlPlaced, distinct, form

SUITE_FILE = "suite.yaml"
REFERENCE_FILE = "reference.cu"
MAX_SUITE_BYTES = 1 << 20
UNGROUPED = "all"
"""The group of tasks that name none."""

Mark = Literal["degenerate", "random", "unsupported", "excluded"]


class _Scope:
    """The context of validation: suite.yaml has no names that its fields could refer to."""


class SuiteTask(YamlPlaced):
    """One problem of a suite, as suite.yaml has it."""

    name: Annotated[str, form(r"[a-z][a-z0-9_]{0,79}")]
    """Name of the problem and of its folder."""
    group: Text = ""
    """Scores are told for each group too, a level say; empty: its folder's or the suite's."""
    candidate: Text = REFERENCE_FILE
    """The kernel that is scored: a file in the problem's folder, `winner`, `run`, or a run's id."""
    workloads: Annotated[tuple[Text, ...], distinct("workload")] = ()
    """The workloads that are timed; () for all that are for timing."""
    weight: Annotated[float | None, Field(gt=0.0, le=1.0)] = None
    """Its share of something larger, such as the time of a network that it is a part of: by it
    `kopt run --suite` divides a budget."""
    degenerate: Text = ""
    """Why a right answer proves little, such as an output that is constant."""
    random: Text = ""
    """Why it has no one right answer."""
    unsupported: Text = ""
    """Why there is no problem folder; the task counts as not valid."""
    excluded: Text = ""
    """Why it is neither run nor counted."""

    @model_validator(mode="after")
    def _has_one_mark(self) -> "SuiteTask":
        marks = [name for name in MARKS if getattr(self, name)]
        if len(marks) > 1:
            raise Mistake(f"{' and '.join(marks)} stand together: keep the one that decides")
        return self

    @property
    def mark(self) -> Mark | None:
        """How it differs from an ordinary task."""
        return next((name for name in MARKS if getattr(self, name)), None)

    @property
    def why(self) -> str:
        """The reason beside its mark; empty without one."""
        return "" if self.mark is None else str(getattr(self, self.mark))

    @property
    def is_sound(self) -> bool:
        """Whether a right answer of it proves something."""
        return self.mark not in ("degenerate", "random")


MARKS: tuple[Mark, ...] = ("degenerate", "random", "unsupported", "excluded")


class SuiteFile(Record):
    """The whole of suite.yaml."""

    name: Annotated[Text, form(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,79}")]
    description: Text = ""
    group: Text = UNGROUPED
    """The group of tasks that have no other."""
    all: Flag = False
    """Whether every problem folder is a task, also those that `problems` does not name."""
    problems: Annotated[tuple[SuiteTask, ...], NAMED] = Field(default=())

    @model_validator(mode="after")
    def _has_tasks(self) -> "SuiteFile":
        if not self.all and not self.problems:
            raise Mistake("no task: name problems, or write all: true for every problem folder")
        return self


@dataclass(frozen=True)
class Suite:
    """A suite with its tasks in order."""

    folder: Path
    file: SuiteFile
    tasks: tuple[SuiteTask, ...]
    """Those of suite.yaml in its order, then with `all` the other problem folders in that of their
    paths; each has its group."""
    problem_folders: dict[str, Path]
    """By task; a task that is marked may have none."""

    @property
    def counted(self) -> tuple[SuiteTask, ...]:
        """The tasks that scores are over."""
        return tuple(task for task in self.tasks if task.mark != "excluded")

    def of_group(self, group: str | None) -> "Suite":
        """Return the suite with the tasks of one group alone; None for all."""
        kept = (task for task in self.tasks if group in (None, task.group))
        return replace(self, tasks=tuple(kept))

    @property
    def groups(self) -> tuple[str, ...]:
        """The groups of counted tasks, in the order of their first task."""
        return tuple(dict.fromkeys(task.group for task in self.counted))


def load_suite(folder: Path) -> Suite:
    """Return the suite in `folder`.

    Raises:
        ToolError: No suite.yaml, or mistakes, each with file, line and field; a problem that is
            named has no folder, or two folders have one name.
    """
    folder = folder.resolve()
    path = folder / SUITE_FILE
    file = _read_file(path)
    found = _problem_folders(folder)
    missing = [
        f"{path}:{task.line}: problem {task.name}: no folder {task.name} with a {PROBLEM_FILE} lies"
        f" in {folder} or one folder deeper; {near_matches(task.name, found)}; or say why there is"
        " none: unsupported: ..."
        for task in file.problems
        if task.mark is None and task.name not in found
    ]
    if missing:
        raise ToolError("\n".join(missing))
    named = {task.name for task in file.problems}
    others = [name for name in found if file.all and name not in named]
    tasks = (*file.problems, *(SuiteTask(name=name) for name in others))
    if not tasks:
        raise ToolError(f"{folder} has no folder with a {PROBLEM_FILE}: a suite needs problems")
    grouped = (_with_group(task, file.group, folder, found.get(task.name)) for task in tasks)
    return Suite(folder, file, tuple(grouped), found)


def _with_group(task: SuiteTask, usual: str, root: Path, own: Path | None) -> SuiteTask:
    is_deeper = own is not None and own.parent != root
    by_folder = own.parent.name if own is not None and is_deeper else usual
    return task.model_copy(update={"group": task.group or by_folder})


def _read_file(path: Path) -> SuiteFile:
    if not path.is_file():
        lines = f"name: {path.parent.name}, then all: true for every problem folder"
        raise ToolError(
            f"{path.parent} is no suite: it has no {SUITE_FILE}; two lines make one: {lines}"
            " (docs/suite.md)"
        )
    try:
        root = load_yaml(path.read_bytes().decode(), max_bytes=MAX_SUITE_BYTES)
    except YamlError as error:
        raise ToolError(f"{path}:{error.line}: {error}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise ToolError(f"cannot read {path}: {error}") from error
    file = read_record(SuiteFile, root, "suite", _Scope(), {})
    if isinstance(file, SuiteFile):
        return file
    raise ToolError("\n".join(f"{path}:{found.line}: {found.message}" for found in file))


def _problem_folders(root: Path) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for folder in sorted(_below(root)):
        if folder.name in found:
            raise ToolError(
                f"{found[folder.name]} and {folder} have one name; a suite needs a name for each"
            )
        found[folder.name] = folder
    return found


def _below(root: Path) -> Iterator[Path]:
    for pattern in (f"*/{PROBLEM_FILE}", f"*/*/{PROBLEM_FILE}"):
        yield from (path.parent for path in root.glob(pattern))
