"""Print the times of many `tune` choices of kernels, beside every library path, in few sessions.

    .venv/bin/python benchmarks/bench_choices.py JOBS [--device cuda:0] [--baseline NAME ...]

JOBS has lines `KERNEL_ID FILE [NAME=N,N,...]`: a kernel, a source, and the values of its header's
`tune` to combine; names that are not given keep the header's first value, and what a variant sets
stays set. Lines of one kernel are timed together, those that begin with # are left out. Every
choice is compiled and verified on the inputs that it is timed on, as in a benchmark; then all are
replayed in random order over rotating buffer sets. Times are medians, not paired: good to a percent
or so, enough to choose, and no verdict.
"""

import argparse
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from headroom_sessions import case_data, make_case

from kopt.config.errors import InfraError, KoptError
from kopt.config.settings import settings_from_environment
from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.record import because
from kopt.kernels.status import Status
from kopt.tools.bench.library_path import check_path
from kopt.tools.bench.reference_side import BaselineSide, candidate_side, launched_program
from kopt.tools.bench.timed_case import TimedCase, timing_request, verify
from kopt.tools.bench.unpaired_times import time_sides
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.run_case import JudgedRun
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.device_choice import open_device
from kopt.tools.devices.device import Program
from kopt.tools.devices.timer import LibrarySide, Side, TimingFailure, as_timer

SIDES = 16
"""How many candidates share a session; the library paths are in each."""
COMPILERS = 12
"""How many compilers run at once."""


@dataclass(frozen=True)
class ChoiceJob:
    """A source and the values to combine for one kernel."""

    kernel: str
    path: Path
    values: Mapping[str, tuple[int, ...]]

    def candidate(self) -> Candidate:
        """Return the source, whose header offers these values."""
        read = read_candidate(self.path)
        source = read.source
        for name, values in self.values.items():
            listed = f"{name}: [{', '.join(map(str, values))}]"
            source, found = re.subn(rf"\b{name}: \[[^\]]*\]", listed, source, count=1)
            if not found:
                raise SystemExit(f"{self.path}: no {name} in the header's tune")
        return Candidate(source, read.name)

    def choices(self) -> Iterator[dict[str, int]]:
        """Yield every combination."""
        for one in product(*self.values.values()):
            yield dict(zip(self.values, one, strict=True))


def read_jobs(text: str) -> list[ChoiceJob]:
    """Return the jobs of the lines.

    Raises:
        SystemExit: A line is no job.
    """
    jobs: list[ChoiceJob] = []
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            kernel, path, *values = words
            pairs = [one.split("=") for one in values]
            grid = {name: tuple(map(int, listed.split(","))) for name, listed in pairs}
        except ValueError:
            raise SystemExit(f"line {number} is not KERNEL_ID FILE [NAME=N,N]: {line}") from None
        jobs.append(ChoiceJob(kernel, Path(path), grid))
    return jobs


def main() -> None:
    """Measure kernel by kernel and print what was found, fastest first."""
    parser = argparse.ArgumentParser(description="The times of many tune choices.")
    parser.add_argument("jobs", type=Path)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--baseline", nargs="*", help="names; default: all of each problem")
    options = parser.parse_args()
    settings = settings_from_environment()
    try:
        jobs = read_jobs(options.jobs.read_text("utf-8"))
        found = {job.kernel: find_kernel(job.kernel, settings.problems) for job in jobs}
        if not jobs:
            parser.error(f"{options.jobs} has no job")
        for job in jobs:
            job.candidate()
        _refuse_unknown(options.baseline, [problem for problem, _ in found.values()])
        with open_device(options.device, settings) as opened:
            device = as_timer(opened)
            if device is None:
                parser.error("a GPU is needed: --device cuda:0")
            print(f"{device.facts.name}, driver {device.facts.driver_version}; all measured")
            for kernel, (problem, workload) in found.items():
                began = time.monotonic()
                case = make_case(problem, workload, device, settings)
                try:
                    measure(case, [job for job in jobs if job.kernel == kernel], options.baseline)
                except InfraError as error:
                    print(f"{kernel}: not measured: {error}")
                print(f"{kernel}: {time.monotonic() - began:.1f} s", flush=True)
    except (OSError, UnicodeDecodeError, KoptError) as error:
        parser.error(str(error))


def _refuse_unknown(names: Sequence[str] | None, problems: Sequence[Problem]) -> None:
    """End the program where a library path is asked for that no problem has."""
    known = {baseline.name for problem in problems for baseline in problem.baselines}
    unknown = set(names or ()) - known
    if unknown:
        raise SystemExit(f"no library path is called {min(unknown)}: {', '.join(sorted(known))}")


def measure(case: TimedCase, jobs: Sequence[ChoiceJob], baselines: Sequence[str] | None) -> None:
    """Print the times of all choices that are right, and why the others are not."""
    with ThreadPoolExecutor(COMPILERS) as pool:
        asked = [(job, choice) for job in jobs for choice in job.choices()]
        programs = list(pool.map(partial(_program, case), *zip(*asked, strict=True)))
    sides: dict[str, Side] = {}
    for (job, choice), program in zip(asked, programs, strict=True):
        took = choice if isinstance(program, str) else program.plan.defines
        values = " ".join(f"{name}={value}" for name, value in took.items())
        name = f"{job.path.name.partition('.')[0]} {values}"
        if name in sides:  # a variant sets what was asked for
            continue
        side = program if isinstance(program, str) else _verified(case, program)
        if isinstance(side, str):
            print(f"{case.kernel} {name}: {side}", flush=True)
        else:
            sides[name] = side
    libraries = list(_libraries(case, baselines))
    candidates = list(sides.items())
    rows: list[tuple[float, str]] = []
    for start in range(0, max(1, len(candidates)), SIDES):
        rows += _timed(case, libraries + candidates[start : start + SIDES])
    for median_us, name in sorted(rows):
        print(f"{case.kernel} {median_us:.3f} us {name}", flush=True)


def _program(case: TimedCase, job: ChoiceJob, choice: Mapping[str, int]) -> Program | str:
    """Return one choice, compiled, or why there is none."""
    arch = case.device.facts.arch
    asked = Case(case.problem, case.workload, job.candidate(), choice)
    try:
        compiled = compile_candidate(CompileRequest(asked, (arch,)), case.settings)
        if compiled.status is not Status.PASSED:
            return f"{compiled.status}{because(compiled.diagnostics)}"
        return launched_program(case, CheckRequest(asked, "quick", arch=arch), compiled)
    except KoptError as error:
        return str(error)


def _verified(case: TimedCase, program: Program) -> Side | str:
    found = verify(case, program, case.device)
    if isinstance(found, JudgedRun):
        return f"{found.status}{because(found.diagnostics)}"
    return candidate_side(program)


def _libraries(case: TimedCase, names: Sequence[str] | None) -> Iterator[tuple[str, Side]]:
    for baseline in case.problem.baselines:
        for pdl in baseline.pdl if names is None or baseline.name in names else ():
            found = check_path(case, case_data(case), LibrarySide(baseline=baseline, pdl=pdl))
            name = f"{baseline.name}{' (PDL on)' if pdl else ''}"
            if isinstance(found, BaselineSide):
                yield name, found.side
            else:
                print(f"{case.kernel} {name}: left out: {found.reason}", flush=True)


def _timed(case: TimedCase, sides: Sequence[tuple[str, Side]]) -> Iterator[tuple[float, str]]:
    """Yield the medians in us of one session; none where a side fails in it."""
    found = time_sides(case, timing_request(case, tuple(side for _, side in sides)))
    if isinstance(found, TimingFailure):
        place = "one of them" if found.side is None else sides[found.side][0]
        print(f"{case.kernel} {place}: {found.outcome.status}{because(found.outcome.diagnostics)}")
        return
    for (name, _), (_, latency) in zip(sides, found, strict=True):
        yield latency.median_us, name


if __name__ == "__main__":
    main()
