"""A suite run on an opened device: which kernels, which folder, how many tasks at once."""

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from kopt.config.errors import ToolError
from kopt.config.settings import Settings
from kopt.kernels.check_result import CheckLevel
from kopt.kernels.problem import Problem
from kopt.search.reports.run_list import RunSummary, list_runs
from kopt.search.store.run_folders import find_run
from kopt.tools.devices.device import ManyEvaluators
from kopt.tools.suite.kernel_choice import RUN, RUN_PREFIX, WINNER, KernelChoice, RunWinner
from kopt.tools.suite.results_folder import RESULTS, writing_results
from kopt.tools.suite.speeds import TIMED, Over
from kopt.tools.suite.suite_file import Suite
from kopt.tools.suite.suite_stage import SuiteRequest, SuiteRun, run_suite
from kopt.tools.suite.task_result import ResultSet, SearchCost
from kopt.tools.suite.task_stage import SuiteSite

from .opened_device import DeviceChoice, OpenedDevice, opened_device
from .progress import status_line
from .session import Session


@dataclass(frozen=True)
class SuiteOptions:
    """The options of `kopt suite run`."""

    folder: Path
    device: str
    arch: str | None
    level: CheckLevel
    over: tuple[Over, ...]
    group: str | None
    candidates: str | None
    results: Path | None
    jobs: int | None
    resume: bool

    @property
    def timed(self) -> tuple[Over, ...]:
        """The baselines of --over, each once, in one order; () is all."""
        return tuple(one for one in TIMED if one in self.over)

    @property
    def results_folder(self) -> Path:
        """The folder of all sets of results."""
        return self.results or self.folder / RESULTS


def refuse_unknown_kernels(candidates: str | None) -> None:
    """Refuse a choice of kernels that is neither a word nor a folder.

    Raises:
        ToolError: It is none.
    """
    if candidates is None or candidates in (WINNER, RUN) or candidates.startswith(RUN_PREFIX):
        return
    if not Path(candidates).is_dir():
        raise ToolError(
            f"--candidates {candidates}: no such folder; allowed: winner, run, a run's id, or a"
            " folder of files named after the tasks, <task>.cu"
        )


def refuse_unknown_group(suite: Suite, group: str | None) -> None:
    """Refuse a group that no task is of.

    Raises:
        ToolError: The message has those that there are.
    """
    if group is not None and group not in suite.groups:
        raise ToolError(f"no task is of the group {group!r}; there are {', '.join(suite.groups)}")


def drive_suite(
    session: Session, options: SuiteOptions, suite: Suite, keep: Callable[[SuiteRun], None]
) -> SuiteRun:
    """Run the tasks of `suite` and return what became of them.

    Raises:
        ToolError: Another process works on the same results.
        SetupError: This machine lacks something, or the results cannot be written.
    """
    with (
        status_line(quiet=session.as_json) as show,
        _opened(options, session.settings, show) as opened,
        writing_results(options.results_folder, _set(options, suite, opened[0])) as folder,
    ):
        request = SuiteRequest(
            suite=suite.of_group(options.group),
            resumes=options.resume,
            progress=show,
            keep=keep,
        )
        sites = [_site(options, one, session.settings) for one in opened]
        return run_suite(request, sites, folder)


@contextmanager
def _opened(
    options: SuiteOptions, settings: Settings, show: Callable[[str], None]
) -> Generator[list[OpenedDevice]]:
    """Open the device, a GPU once for each task at once, and give one for each of these.

    Workers of an opened GPU serve one problem. What takes several evaluations at once, a simulator
    or a pool, is opened once and stands several times.
    """
    choice = DeviceChoice(options.device, options.arch, has_spare=False)
    many = Event()

    def tell(line: str) -> None:
        if not many.is_set():  # then tasks wait for one another all the time
            show(line)

    with ExitStack() as stack:
        first = stack.enter_context(opened_device(choice, settings, tell))
        jobs = options.jobs or _usual_jobs(first, settings)
        if first.timer is None or isinstance(first.device, ManyEvaluators):
            yield [first] * jobs
            return
        if jobs > 1:
            many.set()
        others = (opened_device(choice, settings, tell) for _ in range(jobs - 1))
        yield [first, *map(stack.enter_context, others)]


def _usual_jobs(opened: OpenedDevice, settings: Settings) -> int:
    """Return how many tasks are under way at once: one for each GPU, so that nothing disturbs."""
    if isinstance(opened.device, ManyEvaluators):
        return opened.device.evaluators
    return settings.jobs if opened.timer is None else 1


def _set(options: SuiteOptions, suite: Suite, opened: OpenedDevice) -> ResultSet:
    asked = options.candidates
    is_word = asked is not None and (asked in (WINNER, RUN) or asked.startswith(RUN_PREFIX))
    kernels = "suite" if asked is None else asked if is_word else Path(asked).resolve().name
    return ResultSet(
        suite=suite.file.name,
        kernels=kernels,
        level=options.level,
        device=opened.device.name if opened.timer is None else opened.timer.facts.name,
        arch=opened.arch,
        over=options.timed,
    )


def _site(options: SuiteOptions, opened: OpenedDevice, settings: Settings) -> SuiteSite:
    runs: list[RunSummary] = []

    def find(problem: Problem, chosen: str) -> tuple[RunWinner, ...]:
        if not runs:  # read once, and only where a task asks
            runs.extend(list_runs(settings).runs)
        only = None if chosen == RUN else find_run(chosen, settings).name
        return tuple(
            RunWinner(Path(one.winner_path), one.kernel, _cost(one))
            for one in runs
            if one.winner_path is not None
            and one.kernel in problem.kernel_ids
            and one.arch == opened.arch
            and only in (None, one.run)
        )

    choice = KernelChoice(options.candidates, opened.arch, settings, find)
    return SuiteSite(
        device=opened.device,
        timer=opened.timer,
        arch=opened.arch,
        level=options.level,
        choice=choice,
        settings=settings,
        over=options.timed,
    )


def _cost(run: RunSummary) -> SearchCost:
    return SearchCost(
        run=run.run,
        candidates=run.candidates,
        tokens=run.spend.tokens,
        usd=run.spend.cost_usd,
        is_paid=run.is_paid,
    )
