"""One task of a suite: its kernels checked, then timed over every baseline; on sim estimated.

What a kernel does wrong is in the result, and so is what is wrong with a problem: neither ends the
suite. What this machine lacks is lacking for every task and is raised.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import kopt
from kopt.config.callbacks import ignore
from kopt.config.errors import InfraError, ToolError
from kopt.config.files import content_hash
from kopt.config.gpu_specs import GpuSpec, gpu_for_arch
from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchResult, without_samples
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckLevel, CheckResult
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.record import Diagnostic
from kopt.kernels.roofline import memory_floor_us, workload_bytes
from kopt.kernels.status import Status, Verdict
from kopt.tools.bench.estimated import estimate_checked, estimated_latency
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate
from kopt.tools.check.oracle_parts import oracle_parts
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.stage import check_candidate
from kopt.tools.devices.device import Device
from kopt.tools.devices.timer import TimingDevice

from .kernel_choice import ChosenKernel, KernelChoice, timed_workloads
from .speeds import BASELINES, Over
from .suite_file import SuiteTask
from .task_result import CheckedKernel, SuiteTaskResult, TimedWorkload

_SAID = 3
"""So many findings of a check are kept."""


@dataclass(frozen=True)
class SuiteSite:
    """What tasks are run with."""

    device: Device
    timer: TimingDevice | None
    """`device` if it is a GPU; None for the simulator, which measures no time."""
    arch: str
    level: CheckLevel
    choice: KernelChoice
    settings: Settings
    over: tuple[Over, ...] = ()
    """Baselines that are timed; () is all that a problem has."""

    @property
    def gpu(self) -> GpuSpec:
        """The data sheet that floors and estimates are of."""
        return self.device.gpu or gpu_for_arch(self.arch)


@dataclass(frozen=True)
class PreparedTask:
    """A task as far as it can be read."""

    task: SuiteTask
    key: str
    kernels: tuple[ChosenKernel, ...] = ()
    problem: Problem | None = None
    fault: str | None = None


def prepare_task(task: SuiteTask, folder: Path, site: SuiteSite) -> PreparedTask:
    """Read a task's problem and choose its kernels; what cannot be read is its fault."""
    device = site.device.name if site.timer is None else site.timer.facts.name
    parts = ["kopt.suite-task/1", kopt.__version__, device, site.arch, site.level]
    code: list[str | bytes] = [*parts, *task.workloads, *site.over]
    try:
        code += oracle_parts(folder)
        problem = _over(load_problem(folder), site.over)
        workloads = timed_workloads(problem, task, on_gpu=site.timer is not None)
        kernels = site.choice.kernels(task, problem, workloads)
        for one in kernels:
            code += (one.workload.name, one.file.read_bytes())
    except (ToolError, OSError) as error:
        told = str(error).replace(f"{folder}/", "")  # the task is named beside it
        return PreparedTask(task, content_hash(code), fault=told)
    return PreparedTask(task, content_hash(code), kernels, problem)


def _over(problem: Problem, over: Sequence[Over]) -> Problem:
    """Return `problem` with these baselines alone; with all of them if none is named."""
    names = [BASELINES[one] for one in over]
    kept = tuple(one for one in problem.baselines if not names or one.name in names)
    return problem.model_copy(update={"baselines": kept})


def run_task(
    prepared: PreparedTask, site: SuiteSite, progress: Callable[[str], None] = ignore
) -> SuiteTaskResult:
    """Return what became of a task.

    Raises:
        SetupError: This machine lacks something that every task needs.
    """
    start = perf_counter()
    result = SuiteTaskResult(
        task=prepared.task.name,
        key=prepared.key,
        fault=prepared.fault,
        cost=next((one.cost for one in prepared.kernels if one.cost is not None), None),
        device=site.device.name,
        gpu=None if site.timer is None else site.timer.facts,
        arch=site.arch,
        elapsed_s=0.0,
    )
    if prepared.problem is not None:
        try:
            found = _Task(prepared.problem, prepared.kernels, site, progress).run()
        except (ToolError, InfraError) as error:
            result = result.model_copy(update={"fault": str(error)})
        else:
            checks, times = found
            result = result.model_copy(update={"checks": checks, "times": times})
    return result.model_copy(update={"elapsed_s": perf_counter() - start})


_Checked = tuple[CheckRequest, CheckResult]


@dataclass(frozen=True)
class _Task:
    problem: Problem
    kernels: Sequence[ChosenKernel]
    site: SuiteSite
    progress: Callable[[str], None]

    def run(self) -> tuple[tuple[CheckedKernel, ...], tuple[TimedWorkload, ...]]:
        checked = {file: self._check(file) for file in dict.fromkeys(k.file for k in self.kernels)}
        checks = tuple(_kept(file, result) for file, (_, result) in checked.items())
        if any(one.status is not Status.PASSED for one in checks):
            return checks, ()
        return checks, tuple(self._times(checked))

    def _check(self, file: Path) -> _Checked:
        first = next(one.workload for one in self.kernels if one.file == file)
        request = CheckRequest(
            case=Case(self.problem, first, read_candidate(file)),
            level=self.site.level,
            arch=self.site.arch,
            progress=self.progress,
        )
        return request, check_candidate(request, self.site.device, self.site.settings)

    def _times(self, checked: dict[Path, _Checked]) -> Iterator[TimedWorkload]:
        for kernel in self.kernels:
            request, check = checked[kernel.file]
            timed = (
                self._estimate(request, check)
                if self.site.timer is None
                else self._measure(request, check, kernel.workload, self.site.timer)
            )
            yield timed
            if timed.status is not Status.PASSED:
                return

    def _measure(
        self, asked: CheckRequest, check: CheckResult, workload: Workload, timer: TimingDevice
    ) -> TimedWorkload:
        case = asked.case.at(workload)
        was_checked = workload.name in [one.workload for one in check.workloads]
        known = check.model_copy(update={"kernel": case.kernel_id}) if was_checked else None
        request = BenchRequest(case=case, baselines="every", checked=known, progress=self.progress)
        result = without_samples(bench_candidate(request, timer, self.site.settings))
        return self._timed(workload, result)

    def _timed(self, workload: Workload, result: BenchResult) -> TimedWorkload:
        return TimedWorkload(
            workload=workload.name,
            status=result.status,
            verdict=result.verdict,
            latency=result.latency,
            comparisons=result.comparisons,
            rejected=result.rejected,
            floor_us=self._floor_us(workload),
            said=_first(result.diagnostics),
        )

    def _estimate(self, asked: CheckRequest, check: CheckResult) -> TimedWorkload:
        workload = asked.case.workload
        estimate = estimate_checked(asked, check, self.site.gpu, self.site.settings)
        return TimedWorkload(
            workload=workload.name,
            status=Status.PASSED,
            verdict=Verdict.ESTIMATED,
            latency=estimated_latency(estimate),
            floor_us=self._floor_us(workload),
        )

    def _floor_us(self, workload: Workload) -> float:
        gpu = self.site.gpu
        memory_us = memory_floor_us(workload_bytes(self.problem, workload), gpu)
        return max(memory_us, gpu.null_kernel_us)


def _kept(file: Path, result: CheckResult) -> CheckedKernel:
    return CheckedKernel(
        file=file.name,
        candidate=result.candidate,
        tune=result.tune,
        status=result.status,
        level=result.level,
        device=result.device,
        workloads=tuple(one.workload for one in result.workloads),
        said=_first(result.diagnostics),
        elapsed_s=result.elapsed_s,
    )


def _first(found: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the first findings, errors before the others."""
    return tuple(sorted(found, key=lambda one: one.severity != "error"))[:_SAID]
