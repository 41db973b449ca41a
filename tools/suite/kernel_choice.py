"""Which kernel of a task is scored, and at which workloads.

A choice is a file, the promoted winners, or the winner of a run. Runs are the search's: they are
looked up by what the caller hands in.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.shipped_kernels import kernels_in, visible_kernels

from .suite_file import SuiteTask
from .task_result import SearchCost

WINNER = "winner"
RUN = "run"
RUN_PREFIX = "run-"


@dataclass(frozen=True)
class ChosenKernel:
    """A source for one workload of a task."""

    file: Path
    workload: Workload
    cost: SearchCost | None = None


@dataclass(frozen=True)
class RunWinner:
    """The winner of a run."""

    file: Path
    kernel: str
    cost: SearchCost


FindRun = Callable[[Problem, str], tuple[RunWinner, ...]]
"""Given a problem and `run`, or a run's id: the winners of its runs, the newest first."""


@dataclass(frozen=True)
class KernelChoice:
    """How kernels are chosen in one call of `kopt suite run`."""

    asked: str | None
    """In place of what suite.yaml says: `winner`, `run`, or a folder of `<task>.cu`."""
    arch: str
    settings: Settings
    find_run: FindRun

    def kernels(
        self, task: SuiteTask, problem: Problem, workloads: tuple[Workload, ...]
    ) -> tuple[ChosenKernel, ...]:
        """Return a kernel for each of `workloads`.

        Raises:
            ToolError: There is none; the message says how to get one.
        """
        chosen = self.asked or task.candidate
        if chosen == WINNER:
            return tuple(ChosenKernel(self._winner(problem, one), one) for one in workloads)
        if chosen == RUN or chosen.startswith(RUN_PREFIX):
            return self._of_runs(problem, chosen, workloads)
        file = problem.folder / chosen if self.asked is None else Path(chosen) / f"{task.name}.cu"
        if not file.is_file():
            raise ToolError(f"there is no kernel to score: {file} is no file")
        return tuple(ChosenKernel(file, one) for one in workloads)

    def _winner(self, problem: Problem, workload: Workload) -> Path:
        own = kernels_in(self.settings.winners / problem.name, workload)
        for kernel in (*own, *visible_kernels(problem, workload, self.settings)):
            is_winner = kernel.standing == "winner" and kernel.arch == self.arch
            if is_winner and kernel.source.is_file():
                return kernel.source
        kernel_id = problem.kernel_id(workload)
        raise ToolError(
            f"{kernel_id} has no winner for {self.arch}: kopt bench FILE --kernel {kernel_id}"
            " --promote makes one"
        )

    def _of_runs(
        self, problem: Problem, chosen: str, workloads: tuple[Workload, ...]
    ) -> tuple[ChosenKernel, ...]:
        found = self.find_run(problem, chosen)
        if not found:
            (example, *_) = problem.kernel_ids
            raise ToolError(
                f"no run of {problem.name} has a winner for {self.arch}: kopt run --kernel"
                f" {example}"
                if chosen == RUN
                else f"{chosen} has no winner for {problem.name} and {self.arch}"
            )
        kernels: list[ChosenKernel] = []
        for workload in workloads:
            own = (one for one in found if one.kernel == problem.kernel_id(workload))
            best = next(own, found[0])
            kernels.append(ChosenKernel(best.file, workload, best.cost))
        return tuple(kernels)


def timed_workloads(problem: Problem, task: SuiteTask, *, on_gpu: bool) -> tuple[Workload, ...]:
    """Return the workloads whose times count; on sim the first that it runs, which is estimated.

    Raises:
        ToolError: The task names a workload that the problem has not, or none is left.
    """
    names = [workload.name for workload in problem.workloads]
    if unknown := [name for name in task.workloads if name not in names]:
        raise ToolError(
            f"{task.name} has no workload {unknown[0]!r}, which suite.yaml names; it has"
            f" {', '.join(names)}"
        )
    left_to_others = "check" if on_gpu else "time"
    fit = tuple(one for one in problem.workloads if one.use != left_to_others)
    named = tuple(one for one in fit if one.name in task.workloads)
    chosen = named if named or (task.workloads and on_gpu) else fit
    if not chosen:
        where = "for timing" if on_gpu else "that the simulator runs"
        raise ToolError(f"{task.name} has no workload {where}: see `use` in its problem.yaml")
    return chosen if on_gpu else chosen[:1]
