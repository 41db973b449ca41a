"""A suite run: task after task, what is done already kept, each result on disk at once."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import Literal

from pydantic import Field

from kopt.config.callbacks import ignore, prefixed
from kopt.config.thread_pool import thread_pool
from kopt.config.time_left import TimeLeft
from kopt.kernels.record import Record
from kopt.tools.devices.errand import one_errand

from .results_folder import ResultsFolder
from .suite_file import Suite, SuiteTask
from .task_result import ResultSet, SuiteTaskResult
from .task_stage import PreparedTask, SuiteSite, prepare_task, run_task


@dataclass(frozen=True)
class SuiteRequest:
    """What is asked of a run of a suite."""

    suite: Suite
    resumes: bool = True
    """Whether results that are up to date are kept."""
    progress: Callable[[str], None] = ignore
    keep: "Callable[[SuiteRun], None]" = ignore
    """Given the run so far after each task."""

    @property
    def tasks(self) -> tuple[SuiteTask, ...]:
        """The tasks that can be run."""
        return tuple(task for task in self.suite.counted if task.name in self.suite.problem_folders)

    @property
    def without_problem(self) -> tuple[str, ...]:
        """The names of the others that count."""
        has_folder = self.suite.problem_folders
        return tuple(task.name for task in self.suite.counted if task.name not in has_folder)


class SuiteRun(Record):
    """A run of a suite, whole or as far as it came."""

    schema_: Literal["kopt.suite-run/1"] = Field(default="kopt.suite-run/1", alias="schema")
    suite: str
    set: ResultSet
    folder: str
    """Where the results lie, one file a task."""
    planned: int
    """Tasks that can be run."""
    without_problem: tuple[str, ...] = ()
    """The other tasks that count: suite.yaml says why they have no problem folder."""
    kept: int
    """Results of earlier runs that are up to date."""
    results: tuple[SuiteTaskResult, ...] = ()
    """Those so far, in the order of the suite."""

    @property
    def faults(self) -> tuple[SuiteTaskResult, ...]:
        """Tasks that could not be judged."""
        return tuple(one for one in self.results if one.fault is not None)

    @property
    def valid(self) -> int:
        """How many tasks are valid."""
        return sum(one.is_valid for one in self.results)


def run_suite(request: SuiteRequest, sites: Sequence[SuiteSite], folder: ResultsFolder) -> SuiteRun:
    """Return what became of every task; those with a result that is up to date are not run again.

    Args:
        request: The suite, and what to do after each task.
        sites: One for each task that may be under way at once. A simulator or a pool may stand
            several times; a GPU serves one problem at a time for each time that it was opened.
        folder: Where results are kept.

    Raises:
        SetupError: This machine lacks something; what was done until then is on disk.
    """
    prepared = [
        prepare_task(task, request.suite.problem_folders[task.name], sites[0])
        for task in request.tasks
    ]
    found = {one.task.name: _up_to_date(one, folder) for one in prepared if request.resumes}
    done = {name: result for name, result in found.items() if result is not None}
    ahead = [one for one in prepared if one.task.name not in done]
    begun = SuiteRun(
        suite=request.suite.file.name,
        set=folder.set,
        folder=str(folder.path),
        planned=len(prepared),
        without_problem=request.without_problem,
        kept=len(done),
    )

    def so_far() -> SuiteRun:
        ordered = (done[one.task.name] for one in prepared if one.task.name in done)
        return begun.model_copy(update={"results": tuple(ordered)})

    if done:
        request.progress(f"{len(done)} of {len(prepared)} tasks are done already")
    for result in _results(ahead, request, sites):
        folder.write(result)
        done[result.task] = result
        request.keep(so_far())
    return so_far()


def _up_to_date(prepared: PreparedTask, folder: ResultsFolder) -> SuiteTaskResult | None:
    """Return the result of an earlier run; a fault is tried again."""
    found = folder.read(prepared.task.name)
    is_same = found is not None and found.key == prepared.key and found.fault is None
    return found if is_same else None


def _results(
    ahead: Sequence[PreparedTask], request: SuiteRequest, sites: Sequence[SuiteSite]
) -> Iterator[SuiteTaskResult]:
    """Yield results as they come, a task at each site being under way."""
    if not ahead:
        return
    left = TimeLeft(len(ahead))
    if len(sites) == 1 or len(ahead) == 1:
        for number, one in enumerate(ahead, start=1):
            line = f"{left.place(number)}{left.left(number)}: {one.task.name}"
            request.progress(line)
            yield run_task(one, sites[0], prefixed(request.progress, line))
        return
    free: SimpleQueue[SuiteSite] = SimpleQueue()
    for site in sites:
        cores = max(1, site.settings.jobs // len(sites))
        free.put(replace(site, settings=replace(site.settings, jobs=cores)))
    with thread_pool(len(sites), "suite") as pool:
        futures: list[Future[SuiteTaskResult]] = [
            pool.submit(_run_beside_others, one, free) for one in ahead
        ]
        request.progress(f"{left.place(0)} tasks done")
        for number, future in enumerate(as_completed(futures), start=1):
            yield future.result()
            told = f"{left.place(number)} tasks done{left.left(number + 1)}"
            request.progress(told)


def _run_beside_others(prepared: PreparedTask, free: SimpleQueue[SuiteSite]) -> SuiteTaskResult:
    """Return a task's result, from a site that is free; on a pool all of it is of one GPU."""
    site = free.get()
    try:
        with one_errand():
            return run_task(prepared, site)
    finally:
        free.put(site)
