"""Some tasks of KernelBench imported as `kopt new` does it, by one child that loads torch once."""

import json
import shutil
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from kernelbench_child import USAGE
from kernelbench_rows import Row, write_row
from kernelbench_task import Clock, Pending, Task, TookTooLongError, Trial, tried

from kopt.config.errors import ToolError
from kopt.tools.pytorch.importing.exported import REQUEST
from kopt.tools.pytorch.importing.handed_back import read_regular
from kopt.tools.pytorch.importing.sandboxed import import_policy, read_answer
from kopt.tools.pytorch.importing.stage import ImportRequest, place_of, write_problem
from kopt.tools.sandbox.ladder import run_sandboxed
from kopt.tools.sandbox.policy import SandboxedRun


@dataclass(frozen=True)
class Usage:
    """What an export took, and how it ended: an exit code, or minus a signal's number."""

    wall_s: float = 0.0
    cpu_s: float = 0.0
    ended_with: int | None = None


def run_imports(batch: Sequence[Pending], trial: Trial) -> None:
    """Import some tasks, and keep a row of each."""
    with TemporaryDirectory(prefix="kopt-kernelbench-") as work:
        clock = Clock()
        run = _exported(batch, Path(work), trial)
        _, cpu_s = clock.past()
        usages = [_usage(Path(work) / one.task.name) for one in batch]
        # What the child took for itself, torch's start above all, is shared by its tasks.
        shared_s = (cpu_s - sum(one.cpu_s for one in usages)) / len(batch)
        for one, usage in zip(batch, usages, strict=True):
            clock = Clock()
            import_ = _Import(one.task, Path(work) / one.task.name, usage, run)
            row = tried(one.row, partial(import_.filled, trial))
            wall_s, cpu_s = clock.past()
            taken = {
                "import_s": usage.wall_s + wall_s,
                "import_cpu_s": shared_s + usage.cpu_s + cpu_s,
            }
            write_row(trial.output, row.model_copy(update=taken))


def _exported(batch: Sequence[Pending], work: Path, trial: Trial) -> SandboxedRun:
    for one in batch:
        (work / one.task.name).mkdir()
        (work / one.task.name / REQUEST).write_text(one.task.export.model_dump_json(), "utf-8")
    policy = import_policy(batch[0].task.export, work)
    policy = replace(
        policy,
        readable=(*policy.readable, *{one.task.path.parent for one in batch}),
        wall_s=float(trial.limit_s * (1 + len(batch))),
    )
    command = (sys.executable, "-P", "-m", "kernelbench_child", work, str(trial.limit_s))
    return run_sandboxed(command, policy, trial.settings)


def _usage(folder: Path) -> Usage:
    try:
        return Usage(**json.loads(read_regular(folder / USAGE, 4096)))
    except OSError:
        return Usage()


@dataclass(frozen=True)
class _Import:
    """One task after its export."""

    task: Task
    work: Path
    usage: Usage
    run: SandboxedRun

    def filled(self, trial: Trial, row: Row) -> Row:
        """Write the problem, and return the row of it."""
        request = ImportRequest(self.task.export, trial.output / "problems", self.task.name)
        if self.usage.ended_with == -signal.SIGALRM:
            raise TookTooLongError(f"its export took longer than {trial.limit_s} s")
        if self.usage.ended_with != 0:
            return row.ended("failed", self._ending())
        shutil.rmtree(request.folder / self.task.name, ignore_errors=True)
        try:
            exported = read_answer(self.work, request.export.source, self._ending())
            result = write_problem(request, exported, self.work, place_of(request))
        except ToolError as error:
            return row.ended("refused", str(error))
        if result.launches is None:
            return row.ended("refused", "; ".join(result.warnings))
        return row.model_copy(update={"outcome": "imported", "launches": result.launches})

    def _ending(self) -> str:
        if self.usage.ended_with is None:
            said = self.run.stderr_end.decode(errors="replace")[-200:]
            return f"the child of all exports ended with {self.run.returncode}: {said}"
        return f"its export ended with {self.usage.ended_with}"
