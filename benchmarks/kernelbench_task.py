"""A task of KernelBench, what is done with it, and its kernels checked on the simulator."""

import re
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from kernelbench_rows import Row, write_row

from kopt.config.errors import KoptError
from kopt.config.settings import DEFAULT_ARCH, Settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckLevel
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.status import Status
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.stage import check_candidate
from kopt.tools.pytorch.importing.request import ExportRequest
from kopt.tools.sim.device import SimDevice


@dataclass(frozen=True)
class Task:
    """A file of KernelBench."""

    level: int
    path: Path

    @property
    def number(self) -> int:
        """The number that its file's name begins with."""
        return int(self.path.stem.split("_")[0])

    @property
    def name(self) -> str:
        """What the problem is called."""
        words = re.sub(r"[^a-z0-9]+", "_", self.path.stem.partition("_")[2].lower()).strip("_")
        return f"l{self.level}_{self.number}_{words}"[:60].strip("_")

    @property
    def export(self) -> ExportRequest:
        """What `kopt new FILE` asks for."""
        return ExportRequest(source=str(self.path), import_path=(str(self.path.parent),))


@dataclass(frozen=True)
class Pending:
    """A task that is to be done."""

    task: Task
    key: str
    kept: Row | None = None
    """Its row, where it is imported and only the check is missing."""

    @property
    def row(self) -> Row:
        """The row to be filled in."""
        task = self.task
        if self.kept is not None:
            return self.kept.model_copy(update={"timed_out": False})
        return Row(
            level=task.level, number=task.number, name=task.name, key=self.key, outcome="failed"
        )


@dataclass(frozen=True)
class Trial:
    """What is done with every task."""

    output: Path
    """Has problems/ and rows/."""
    settings: Settings
    level: CheckLevel
    limit_s: int
    """The most that an export may take, and a check."""
    jobs: int


class TookTooLongError(Exception):
    """The task's time is over."""


@dataclass(frozen=True)
class Clock:
    """Wall and CPU seconds of this process and its children, since it was made."""

    began: tuple[float, float] = field(default_factory=lambda: _now())

    def past(self) -> tuple[float, float]:
        """Return both."""
        wall_s, cpu_s = _now()
        return wall_s - self.began[0], cpu_s - self.began[1]


def _now() -> tuple[float, float]:
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return time.monotonic(), sum(one.ru_utime + one.ru_stime for one in usages)


def tried(row: Row, step: Callable[[Row], Row]) -> Row:
    """Return what a step makes of a row; what it raises is the row's reason and ends no table."""
    try:
        return step(row)
    except TookTooLongError as error:
        return row.ended("failed", str(error)).model_copy(update={"timed_out": True})
    except KoptError as error:
        return row.ended("failed", str(error))
    except Exception as error:  # the outermost frame of a task: a bug is a row of the table
        return row.ended("failed", f"a bug: {type(error).__name__}: {error}")


def run_check(one: Pending, trial: Trial) -> None:
    """Check the kernels of a task that is imported, and keep its row."""
    clock = Clock()
    row = tried(one.row, lambda row: _checked(row, trial))
    wall_s, cpu_s = clock.past()
    write_row(trial.output, row.model_copy(update={"check_s": wall_s, "check_cpu_s": cpu_s}))


def _checked(row: Row, trial: Trial) -> Row:
    folder = trial.output / "problems" / row.name
    problem = load_problem(folder)
    case = Case(problem, problem.workloads[0], read_candidate(folder / "reference.cu"), {})
    request = CheckRequest(case, trial.level, arch=DEFAULT_ARCH)
    result = check_candidate(request, SimDevice(trial.settings), trial.settings)
    if result.status is Status.PASSED:
        return row.ended("passed")
    said = [one.message for one in result.diagnostics if one.severity == "error"]
    failed = row.ended("failed", f"{result.status}: {'; '.join(said) or result.mismatch}")
    return failed.model_copy(update={"timed_out": result.status is Status.TIMEOUT})
