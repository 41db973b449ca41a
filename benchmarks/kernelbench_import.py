"""Import KernelBench's tasks and check their kernels on the simulator: `make kernelbench`.

Each task becomes a problem as `kopt new` makes it, and its reference.cu goes through `kopt check
--device sim` at the small shape. What became of it is a record below --output; a later call goes on
with what is missing there, or was made by other sources of kopt.

    KERNELBENCH=FOLDER .venv/bin/python benchmarks/kernelbench_import.py [--level 1] [--ids 1,8,23]
        [--jobs 2] [--import-only] [--check full] [--again] [--older] [--output FOLDER]

FOLDER is a checkout of KernelBench, which is not part of kopt; its files run in the sandbox, on
fake tensors (docs/pytorch.md).
"""

import argparse
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FrameType
from typing import NoReturn

from kernelbench_batch import run_imports
from kernelbench_rows import (
    checkout_of,
    read_row,
    row_path,
    sources_digest,
    summary,
    write_row,
    write_table,
)
from kernelbench_task import Pending, Task, TookTooLongError, Trial, run_check

from kopt.config.files import content_hash
from kopt.config.settings import settings_from_environment
from kopt.tools.pytorch.torch_library import load_torch

LIMIT_S = 300
"""Seconds that the export of a task may take, and its check."""
_GRACE_S = 60
"""Seconds after which a check is killed that does not end by itself."""
_BATCH = 10
"""Imports that one child makes: it loads torch once."""
_ROOT = Path(__file__).parent.parent


def main() -> int:
    """Print a line for each task, then how many came to what; 1 if a task failed, 2 for misuse."""
    options = _options()
    try:
        tasks = list(_tasks(checkout_of(os.environ.get("KERNELBENCH")), options))
    except ValueError as error:
        print(f"make kernelbench: {error}", file=sys.stderr)
        return 2
    settings = settings_from_environment()
    settings = replace(settings, jobs=max(1, settings.jobs // options.jobs))
    trial = Trial(options.output.absolute(), settings, options.check, LIMIT_S, options.jobs)
    torch = load_torch()  # once: the processes of the checks are forks of this one
    keys = keys_of(tasks, torch.__version__, options.check)
    to_import = [
        Pending(task, keys[task.name])
        for task in tasks
        if options.again or not is_kept(task, keys, trial, options.older)
    ]
    print(f"make kernelbench: {len(to_import)} of {len(tasks)} tasks to import", flush=True)
    import_all(to_import, trial)
    if not options.import_only:
        check_all(to_check(tasks, trial), trial)
    rows = [row for task in tasks if (row := read_row(trial.output, task.name)) is not None]
    older = sum(row.key != keys[row.name] for row in rows)
    closing = summary(rows, len(tasks) - len(rows), older)
    print(f"\n{closing}\n{write_table(trial.output, rows, closing)}")
    return int(any(row.outcome == "failed" for row in rows))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Import KernelBench's tasks and check them.")
    parser.add_argument("--level", type=int, action="append", help="of 1, 2, 3, 4; default 1 to 3")
    parser.add_argument("--ids", default="", help="numbers of tasks, as 1,8,23; default all")
    parser.add_argument("--jobs", type=int, default=1, help="tasks at once")
    parser.add_argument("--import-only", action="store_true", help="check no kernels")
    parser.add_argument("--check", choices=["quick", "full"], default="quick", help="its level")
    parser.add_argument("--again", action="store_true", help="do finished tasks, too")
    parser.add_argument("--older", action="store_true", help="keep rows of other sources of kopt")
    parser.add_argument("--output", type=Path, default=Path("build/kernelbench"))
    return parser.parse_args()


def _tasks(root: Path, options: argparse.Namespace) -> Iterator[Task]:
    numbers = {int(one) for one in options.ids.split(",") if one}
    for level in options.level or [1, 2, 3]:
        tasks = [Task(level, path) for path in (root / f"level{level}").glob("*.py")]
        for task in sorted(tasks, key=lambda one: one.number):
            if not numbers or task.number in numbers:
                yield task


def keys_of(tasks: Sequence[Task], *decisive: str) -> dict[str, str]:
    """Return what the row of each task must say to be of these sources, by name.

    Args:
        tasks: Their files are among the sources.
        decisive: What else decides: torch's version, the level of the check.
    """
    sources = sources_digest(_ROOT)
    return {one.name: content_hash([sources, *decisive, one.path.read_bytes()]) for one in tasks}


def is_kept(task: Task, keys: dict[str, str], trial: Trial, older: bool) -> bool:
    """Return whether a task has a row that need not be made again."""
    row = read_row(trial.output, task.name)
    if row is None or (row.timed_out and not row.is_imported):
        return False
    return older or row.key == keys[task.name]


def import_all(pending: Sequence[Pending], trial: Trial) -> None:
    """Import the tasks, some at a time."""
    for one in pending:
        row_path(trial.output, one.task.name).unlink(missing_ok=True)
    batches = [pending[start : start + _BATCH] for start in range(0, len(pending), _BATCH)]
    pool = Pool(trial, lambda batch: run_imports(batch, trial))
    pool.run([(tuple(batch), LIMIT_S * (1 + len(batch))) for batch in batches])


def to_check(tasks: Sequence[Task], trial: Trial) -> list[Pending]:
    """Return the tasks that are imported and have no verdict yet, those of few launches first."""
    rows = [(task, read_row(trial.output, task.name)) for task in tasks]
    found = [
        Pending(task, row.key, row)
        for task, row in rows
        if row is not None and row.is_imported and (row.outcome == "imported" or row.timed_out)
    ]
    return sorted(found, key=lambda one: one.row.launches)


def check_all(pending: Sequence[Pending], trial: Trial) -> None:
    """Check the kernels of the tasks, each in a process of its own."""
    pool = Pool(trial, lambda batch: run_check(batch[0], trial))
    pool.run([((one,), LIMIT_S) for one in pending])


Batch = tuple[Pending, ...]


@dataclass
class Pool:
    """Processes, one a batch of tasks: what a batch takes and leaves ends with it."""

    trial: Trial
    work: Callable[[Batch], None]
    running: dict[BaseProcess, tuple[Batch, float]] = field(
        default_factory=dict[BaseProcess, tuple[Batch, float]]
    )

    def run(self, batches: Sequence[tuple[Batch, float]]) -> None:
        """Do all of them, each within its seconds."""
        context = multiprocessing.get_context("fork")
        waiting = list(reversed(batches))
        while waiting or self.running:
            while waiting and len(self.running) < self.trial.jobs:
                batch, limit_s = waiting.pop()
                process: BaseProcess = context.Process(target=self._limited, args=(batch, limit_s))
                process.start()
                self.running[process] = (batch, time.monotonic() + limit_s + _GRACE_S)
            wait([process.sentinel for process in self.running], timeout=1.0)
            for process in list(self.running):
                self._collect(process)

    def _limited(self, batch: Batch, limit_s: float) -> None:
        def end(_: int, __: FrameType | None) -> NoReturn:
            raise TookTooLongError(f"took longer than {limit_s:.0f} s")

        signal.signal(signal.SIGALRM, end)
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        self.work(batch)
        signal.setitimer(signal.ITIMER_REAL, 0)

    def _collect(self, process: BaseProcess) -> None:
        batch, ends_at = self.running[process]
        if process.is_alive():
            if time.monotonic() > ends_at:
                process.kill()  # its sandboxes end with it
            return
        del self.running[process]
        for one in batch:
            row = read_row(self.trial.output, one.task.name)
            if row in (None, one.kept):  # it left none
                row = one.row.ended("failed", f"its process ended with {process.exitcode}")
                write_row(self.trial.output, row)
            taken = f"{row.import_cpu_s:5.1f} s {row.check_cpu_s:5.1f} s"
            told = f"{row.outcome:8} {row.launches:4} launches {taken}  {row.name}"
            print(f"{told}  {row.reason[:160]}".rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
