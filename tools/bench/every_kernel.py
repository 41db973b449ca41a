"""Every problem's own kernels, its reference and its winners, against every baseline.

A kernel that cannot be timed costs its own entry and no other.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kopt.config.errors import InfraError, ToolError
from kopt.config.settings import Settings
from kopt.kernels.bench_table import BenchTable, TableEntry
from kopt.kernels.candidate import read_candidate
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.status import Status

from .request import MIN_PAIRS, BaselineChoice, BenchRequest, TimingDevice
from .stage import bench_candidate

REFERENCE = "reference.cu"


@dataclass(frozen=True)
class OwnKernel:
    """A kernel of ours at one workload."""

    problem: Problem
    workload: Workload
    path: Path

    @property
    def kernel(self) -> str:
        """Kernel id."""
        return f"{self.problem.name}_{self.workload.name}"

    @property
    def source(self) -> str:
        """What it is called in a table."""
        return "reference" if self.path.name == REFERENCE else self.path.name


@dataclass(frozen=True)
class TableRequest:
    """What is asked of the table."""

    kernels: Sequence[OwnKernel]
    baselines: BaselineChoice = "every"
    min_pairs: int = MIN_PAIRS
    progress: Callable[[str], None] | None = None
    """Called with a short line before each kernel."""


def own_kernels(parts: Sequence[str], arch: str, settings: Settings) -> list[OwnKernel]:
    """Return the reference kernel, and the winner for `arch`, of every workload.

    Args:
        parts: Only kernel ids that contain one of these; empty for all.
        arch: Compiler target of the device, e.g. sm_90a.
        settings: Where the user's own problems lie.

    Raises:
        ToolError: A part fits no kernel id.
    """
    found = [
        OwnKernel(problem, workload, path)
        for problem in load_problems(settings.problems).values()
        for workload in problem.workloads
        for path in _sources(problem, workload, arch)
    ]
    for part in parts:
        if not any(part in own.kernel for own in found):
            raise ToolError(f"no kernel id contains {part!r}; 'kopt list' shows all")
    return [own for own in found if not parts or any(part in own.kernel for part in parts)]


def bench_every(request: TableRequest, device: TimingDevice, settings: Settings) -> BenchTable:
    """Return the benchmarks of all kernels of `request`, one after another.

    Raises:
        SetupError: This machine lacks what every one of them needs.
    """
    entries: list[TableEntry] = []
    for number, own in enumerate(request.kernels, start=1):
        if request.progress is not None:
            request.progress(f"{number}/{len(request.kernels)} {own.kernel}, {own.source}")
        entries.append(_entry(own, request, device, settings))
    statuses = (entry.status for entry in entries)
    failed = (status for status in statuses if status not in (None, Status.PASSED))
    return BenchTable(
        status=next(failed, Status.PASSED),
        device=device.name,
        gpu=device.facts,
        entries=tuple(entries),
    )


def _sources(problem: Problem, workload: Workload, arch: str) -> Iterator[Path]:
    reference = problem.folder / REFERENCE
    winner = problem.folder / "winners" / f"{workload.name}.{arch}.cu"
    yield from (path for path in (reference, winner) if path.is_file())


def _entry(
    own: OwnKernel, asked: TableRequest, device: TimingDevice, settings: Settings
) -> TableEntry:
    request = BenchRequest(
        problem=own.problem,
        workload=own.workload,
        candidate=read_candidate(own.path),
        baselines=asked.baselines,
        min_pairs=asked.min_pairs,
    )
    try:
        result = bench_candidate(request, device, settings)
    except (ToolError, InfraError) as error:
        return TableEntry(
            kernel=own.kernel,
            source=own.source,
            result=None,
            error=str(error),
            machine_failed=isinstance(error, InfraError),
        )
    return TableEntry(kernel=own.kernel, source=own.source, result=result)
