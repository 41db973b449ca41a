"""All cases of a check, a few at once, up to the first that fails.

Runs are started in the order of the cases and judged in that order: the report is that of the first
failing case, whichever finished first, so that a check gives the same answer every time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path

from kopt.config.callbacks import ignore
from kopt.config.errors import ToolError
from kopt.config.settings import DEFAULT_ARCH, Settings
from kopt.config.thread_pool import thread_pool
from kopt.config.time_left import TimeLeft
from kopt.kernels.case import Case
from kopt.kernels.check_result import Mismatch, RaceCheck, TensorAccuracy, WorkloadCheck
from kopt.kernels.counters import ExecutionCounters
from kopt.kernels.graph_runs import GraphRunner
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.record import Diagnostic
from kopt.kernels.status import Status
from kopt.tools.devices.device import Device, ExecutionOutcome, Program

from .accuracy import worst_accuracy
from .case_data import CaseKey, make_case_data
from .cases import InputCase, Run
from .judged_rows import judged_count
from .oracle_cache import OracleCache, open_cache
from .oracle_memory import affordable_jobs
from .ordered_device import OrderedDevice
from .run_case import JudgedRun, SharedCase, compare_poisons, execute_run
from .scalars import launched_with, with_scalars


@dataclass(frozen=True)
class CaseBatch:
    """What is checked."""

    case: Case
    """The candidate; counters are reported of the case's workload."""
    plans: Mapping[str, LaunchPlan]
    """By workload name."""
    cubins: Mapping[str, Path]
    """By workload name; what a GPU loads."""
    cases: tuple[InputCase, ...]
    progress: Callable[[str], None] = ignore
    arch: str = DEFAULT_ARCH


@dataclass(frozen=True)
class BatchResult:
    """The fields of a `CheckResult` that the cases decide."""

    status: Status
    workloads: tuple[WorkloadCheck, ...] = ()
    hidden_shapes: tuple[WorkloadCheck, ...] = ()
    mismatch: Mismatch | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    accuracy: tuple[TensorAccuracy, ...] = ()
    counters: ExecutionCounters | None = None
    sandbox: str | None = None
    cpu_bodies: tuple[str, ...] = ()
    race_check: RaceCheck | None = None
    unexecuted_lines: tuple[int, ...] = ()


@dataclass
class _Tally:
    """What has been collected so far, while results come in."""

    batch: CaseBatch
    failed: JudgedRun | None = None
    reports: list[tuple[InputCase, Run, JudgedRun]] = field(
        default_factory=list[tuple[InputCase, Run, JudgedRun]]
    )


def run_cases(batch: CaseBatch, device: Device, settings: Settings) -> BatchResult:
    """Execute and judge the cases of `batch` until one fails.

    Raises:
        SetupError: The oracle cache cannot be kept.
        ToolError: The problem's oracle is at fault.
        InfraError: The device failed, not the candidate.
    """
    tally = _Tally(batch)
    cache = open_cache(settings)
    workloads = [case.workload for case in batch.cases]
    jobs = affordable_jobs(batch.case.problem, workloads, settings.jobs)
    with thread_pool(jobs, "check") as pool:
        _collect(tally, _submit(batch, OrderedDevice(device), cache, pool))
    return _result(tally)


_Runs = list[tuple[Run, Future[JudgedRun]]]
_Submitted = list[tuple[SharedCase, _Runs]]


def _submit(
    batch: CaseBatch, device: OrderedDevice, cache: OracleCache, pool: ThreadPoolExecutor
) -> _Submitted:
    """Queue every run; a case's data is loaded when its first run starts."""
    submitted: _Submitted = []
    numbers = count()
    candidate, problem = batch.case.candidate, batch.case.problem
    graphs = device.device if isinstance(device.device, GraphRunner) else None
    for case in batch.cases:
        name = case.workload.name
        own, workload = with_scalars(problem, case.workload, dict(case.scalars))
        plan = launched_with(batch.plans[name], dict(case.scalars))
        program = Program(candidate, own, plan, batch.cubins.get(name), batch.arch)
        key = CaseKey(own, workload, case.seed, case.regime)
        # What nobody meets again is not kept: it would push out what everybody does.
        load = make_case_data if case.hidden else cache.load
        shared = SharedCase(program, case, partial(load, key, graphs))
        runs = [
            (run, pool.submit(_execute, shared, run, device, next(numbers))) for run in case.runs
        ]
        submitted.append((shared, runs))
    return submitted


def _execute(shared: SharedCase, run: Run, device: OrderedDevice, number: int) -> JudgedRun:
    try:
        report = execute_run(shared, run, device.run_device(number))
        if report.status is not Status.PASSED:
            device.note_failure(number)
    finally:
        device.end(number)
    return report


def _collect(tally: _Tally, submitted: _Submitted) -> None:
    """Take results in order until one fails; what is taken is dropped, outputs are large."""
    pace = TimeLeft(len(submitted))
    for number, (shared, runs) in enumerate(_taken(submitted), start=1):
        if tally.failed is not None:
            return
        place = f"{pace.place(number)}: " if len(tally.batch.cases) > 1 else ""
        tally.batch.progress(f"{place}{shared.case.label}{pace.left(number)}")
        done: list[tuple[Run, JudgedRun]] = []
        for run, future in runs:
            try:
                report = future.result()
            except ToolError:
                if shared.case.drawn:  # an oracle need not serve shapes that its problem lacks
                    continue
                raise
            tally.reports.append((shared.case, run, _without_outputs(report)))
            done.append((run, report))
            if report.status is not Status.PASSED:
                tally.failed = report
                return
        if len(done) == 2:
            tally.failed = compare_poisons(shared, done[0], done[1])


def _taken(submitted: _Submitted) -> Iterator[tuple[SharedCase, _Runs]]:
    """Yield the cases in order; nothing holds one that was taken."""
    submitted.reverse()
    while submitted:
        yield submitted.pop()


def _without_outputs(report: JudgedRun) -> JudgedRun:
    return replace(report, outcome=replace(report.outcome, outputs={}))


def _result(tally: _Tally) -> BatchResult:
    reports = [report for _, _, report in tally.reports]
    # What a candidate writes decides both: neither may tell of hidden inputs.
    told = [report for case, _, report in tally.reports if not case.hidden]
    failed = tally.failed
    named = [
        report.outcome.counters
        for case, _, report in tally.reports
        if case.workload.name == tally.batch.case.workload.name and not case.hidden
    ]
    return BatchResult(
        status=Status.PASSED if failed is None else failed.status,
        workloads=_workload_checks(tally, drawn=False),
        hidden_shapes=_workload_checks(tally, drawn=True),
        mismatch=None if failed is None else failed.mismatch,
        diagnostics=() if failed is None else failed.diagnostics,
        accuracy=worst_accuracy(entry for report in told for entry in report.accuracy),
        counters=next((counters for counters in named if counters is not None), None),
        sandbox=next((report.outcome.sandbox for report in reports), None),
        cpu_bodies=tuple(
            sorted({name for report in reports for name in report.outcome.cpu_bodies})
        ),
        unexecuted_lines=unexecuted_lines(report.outcome for report in reports),
    )


def unexecuted_lines(outcomes: Iterable[ExecutionOutcome]) -> tuple[int, ...]:
    """Return the lines that load or store in some program, and did so in no run."""
    ran: dict[int, bool] = {}
    for outcome in outcomes:
        for line, has_run in outcome.access_lines.items():
            ran[line] = ran.get(line, False) or has_run
    return tuple(sorted(line for line, has_run in ran.items() if not has_run))


def _workload_checks(tally: _Tally, *, drawn: bool) -> tuple[WorkloadCheck, ...]:
    """Return one entry per shape that was reached; only the last of all can have failed."""
    reached = [case for case, _, _ in tally.reports]
    names = dict.fromkeys(case.workload.name for case in reached if case.drawn == drawn)
    return tuple(
        _workload_check(tally, name, is_last=name == reached[-1].workload.name) for name in names
    )


def _workload_check(tally: _Tally, name: str, is_last: bool) -> WorkloadCheck:
    entries = [entry for entry in tally.reports if entry[0].workload.name == name]
    failed = tally.failed if is_last else None
    return WorkloadCheck(
        workload=name,
        status=Status.PASSED if failed is None else failed.status,
        visible_seeds=len({case.seed for case, _, _ in entries if not case.hidden}),
        hidden_seeds=len({case.seed for case, _, _ in entries if case.hidden}),
        poisons=len({run.poison for _, run, _ in entries}),
        schedules=len({run.schedule_seed for _, run, _ in entries}),
        executions=sum(report.executions for _, _, report in entries),
        judged_rows=judged_count(tally.batch.case.problem, entries[0][0].workload),
        elapsed_s=sum(report.elapsed_s for _, _, report in entries),
    )
