"""Print what each kernel beside a problem is worth against each library, workload by workload.

    .venv/bin/python benchmarks/bench_library.py --problem gemm_bf16 [--problem NAME ...]
        [--device cuda:0] [--kernel PART ...] [--save FILE]

For every workload that is there to be timed, and every kernel in the problem's `unproven/` that
claims it: a benchmark with all library paths that pass their check (docs/benchmarking.md). A row
has both times and the speed of the kernel in units of the library's, with its interval, measured in
pairs. --save keeps the whole results as JSON, one document for each benchmark and line.
"""

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

from markdown_tables import grid

from kopt.config.errors import InfraError, SetupError
from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problems
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate
from kopt.tools.device_choice import open_device
from kopt.tools.devices.timer import TimingDevice, as_timer

COLUMNS = ("workload", "kernel", "us", "library", "library us", "speed", "95 % interval")
TEXTS = ("workload", "kernel", "library")


def main() -> None:
    """Measure, print a table for each workload as soon as it is there."""
    parser = argparse.ArgumentParser(description="Kernels beside problems against libraries.")
    parser.add_argument("--problem", action="append", required=True, help="may come again")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--kernel", nargs="*", default=[""], help="parts of workload names")
    parser.add_argument("--save", type=Path, help="a file for the results, one JSON a line")
    options = parser.parse_args()
    named = [
        case
        for problem in _known(options.problem)
        for case in cases(problem)
        if any(part in case.workload.name for part in options.kernel)
    ]
    if not named:
        parser.error(f"no workload that is to be timed has {' or '.join(options.kernel)} in it")
    settings = settings_from_environment()
    try:
        with open_device(options.device, settings) as opened:
            device = as_timer(opened)
            if device is None:
                parser.error("a GPU is needed: --device cuda:0")
            print(f"{device.facts.name}, driver {device.facts.driver_version}; all measured")
            for case in named:
                print(_row(case, device, settings, options.save), flush=True)
    except SetupError as error:
        parser.error(str(error))


def _row(case: Case, device: TimingDevice, settings: Settings, save: Path | None) -> str:
    """Return the table of one benchmark, or how the machine failed under it."""
    try:
        result = bench_candidate(BenchRequest(case, baselines="every"), device, settings)
    except InfraError as error:
        return f"{case.workload.name} {case.candidate.name}: not measured: {error}"
    if save is not None:
        with save.open("a", encoding="utf-8") as file:
            file.write(result.model_dump_json(by_alias=True) + "\n")
    return table(case, result)


def _known(names: Sequence[str]) -> list[Problem]:
    """Return the problems of these names; the program ends where there is none."""
    problems = load_problems()
    unknown = [name for name in names if name not in problems]
    if unknown:
        raise SystemExit(f"no problem is called {unknown[0]}: one of {', '.join(problems)}")
    return [problems[name] for name in names]


def cases(problem: Problem) -> Iterator[Case]:
    """Yield every kernel at every workload that it claims and that is there to be timed."""
    sources = [read_candidate(path) for path in sorted((problem.folder / "unproven").glob("*.cu"))]
    for workload in problem.workloads:
        if workload.use == "check":
            continue
        for source in sources:
            case = Case(problem, workload, source)
            if workload in case.domain:
                yield case


def table(case: Case, result: BenchResult) -> str:
    """Return the comparisons of one benchmark, or why there are none, and what was left out."""
    name = case.candidate.name
    lines = [f"{case.workload.name} {path}" for path in _rejected(result)]
    if result.latency is None:
        return "\n".join([f"{case.workload.name} {name}: {result.status}", *lines])
    rows = [
        (case.workload.name, name, f"{result.latency.median_us:.2f}", *cells)
        for cells in _cells(result)
    ]
    return "\n".join([grid(COLUMNS, rows, TEXTS), *lines])


def _cells(result: BenchResult) -> Iterator[Sequence[str]]:
    for one in result.comparisons:
        library_us = "" if one.baseline_latency is None else f"{one.baseline_latency.median_us:.2f}"
        speed = "" if one.speedup is None else f"{one.speedup:.3f}x"
        interval = "" if one.interval is None else f"{one.interval[0]:.3f} to {one.interval[1]:.3f}"
        yield one.baseline.label, library_us, speed, interval


def _rejected(result: BenchResult) -> Iterator[str]:
    for one in result.rejected:
        yield f"left out: {one.name}{' (PDL on)' if one.pdl else ''}: {one.reason}"


if __name__ == "__main__":
    main()
