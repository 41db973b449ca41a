"""Every problem and workload: the reference kernel and the winner, against every baseline.

Problems come one after another, so that one worker serves all rows of a problem. A row that fails
is a row with an error; the others are measured all the same.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Literal

from kopt.config.callbacks import ignore
from kopt.config.errors import KoptError
from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchAllResult, BenchRow, without_samples
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.shipped_kernels import kernels_in
from kopt.tools.devices.timer import TimingDevice

from .request import BaselineChoice, BenchRequest
from .stage import bench_candidate


@dataclass(frozen=True)
class BenchAllRequest:
    """What is measured."""

    problems: tuple[Problem, ...]
    baselines: BaselineChoice = "every"
    progress: Callable[[str], None] = ignore
    """Called with the row at work and how many there are."""
    on_row: Callable[[BenchAllResult], None] = ignore
    """Called after each row with all rows so far."""


@dataclass(frozen=True)
class _Source:
    problem: Problem
    workload: Workload
    kind: Literal["reference", "winner"]
    path: Path

    @property
    def kernel(self) -> str:
        return self.problem.kernel_id(self.workload)


def bench_all(request: BenchAllRequest, device: TimingDevice, settings: Settings) -> BenchAllResult:
    """Return one row per source and workload; errors of a row are part of it."""
    start = perf_counter()
    facts = device.facts
    sources = tuple(_sources(request.problems, facts.arch, settings))
    result = BenchAllResult(
        device=device.name, gpu=facts, planned=len(sources), rows=(), elapsed_s=0.0
    )
    for number, source in enumerate(sources, start=1):
        request.progress(f"{source.kernel}, {source.kind} ({number} of {len(sources)})")
        row = _row(source, request.baselines, device, settings)
        result = result.model_copy(
            update={"rows": (*result.rows, row), "elapsed_s": perf_counter() - start}
        )
        request.on_row(result)
    return result


def _sources(problems: tuple[Problem, ...], arch: str, settings: Settings) -> Iterator[_Source]:
    for problem in problems:
        # Those that come with the problem, and those that were promoted here.
        folders = (problem.folder / "winners", settings.winners / problem.name)
        for workload in problem.workloads:
            yield _Source(problem, workload, "reference", problem.folder / "reference.cu")
            for folder in folders:
                for winner in kernels_in(folder, workload):
                    if winner.arch == arch and winner.source.is_file():
                        yield _Source(problem, workload, "winner", winner.source)


def _row(
    source: _Source, baselines: BaselineChoice, device: TimingDevice, settings: Settings
) -> BenchRow:
    row = BenchRow(kernel=source.kernel, source=source.kind, file=str(source.path), result=None)
    try:
        request = BenchRequest(
            case=Case(source.problem, source.workload, read_candidate(source.path)),
            baselines=baselines,
        )
        result = bench_candidate(request, device, settings)
    except KoptError as error:
        return row.model_copy(update={"error": str(error)})
    return row.model_copy(update={"result": without_samples(result)})
