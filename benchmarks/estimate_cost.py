"""Print what an estimate costs beside the quick check that it follows.

    .venv/bin/python benchmarks/estimate_cost.py [--kernel PART ...] [--arch ARCH]

The reference kernel of every workload that is checked on the simulator, and the winner where one is
shipped. Each program is compiled anew (a comment is added to it), checked at level quick on the
simulator, then estimated. CPU time is that of this process and of all that it waits for, user and
system: other work on the machine moves it least.
"""

import argparse
import os
from collections.abc import Iterator
from statistics import geometric_mean, median
from time import time_ns

from markdown_tables import grid

from kopt.config.gpu_specs import gpu_for_arch
from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.shipped_kernels import shipped_kernels
from kopt.kernels.status import Status
from kopt.tools.bench.estimated import estimate_checked
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.stage import check_candidate
from kopt.tools.sim.device import SimDevice

HEAD = ("kernel", "program", "check, CPU s", "estimate, CPU s", "both / check")
TARGET = 1.5
"""Most that a check with its estimate is to cost of one without."""


def programs(parts: list[str], arch: str) -> Iterator[tuple[str, str, Case]]:
    """Yield kernel id, program and case of everything that is timed."""
    for problem in load_problems().values():
        for workload in problem.workloads:
            kernel = problem.kernel_id(workload)
            if parts and not any(part in kernel for part in parts):
                continue
            start = read_candidate(problem.folder / "reference.cu")
            yield kernel, "reference", Case(problem, workload, start)
            for shipped in shipped_kernels(problem, workload):
                if shipped.standing == "winner" and shipped.arch == arch:
                    winner = read_candidate(shipped.source)
                    yield kernel, "winner", Case(problem, workload, winner)


def costs(case: Case, arch: str, settings: Settings) -> tuple[float, float] | None:
    """Return the CPU seconds of a check and of an estimate; None for a kernel not checked here."""
    new = Candidate(f"{case.candidate.source}\n// {time_ns()}\n", case.candidate.name)
    asked = CheckRequest(Case(case.problem, case.workload, new), "quick", arch=arch)
    begun = _cpu_s()
    check = check_candidate(asked, SimDevice(settings), settings)
    checked = _cpu_s()
    if check.status is not Status.PASSED:
        return None
    estimate_checked(asked, check, gpu_for_arch(arch), settings)
    return checked - begun, _cpu_s() - checked


def _cpu_s() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def main() -> None:
    """Print the table and what it comes to."""
    parser = argparse.ArgumentParser(description="What an estimate costs beside a quick check.")
    parser.add_argument("--kernel", nargs="+", default=[], help="parts of kernel ids")
    parser.add_argument("--arch", default="sm_90a", help="compiler target (sm_90a)")
    options = parser.parse_args()
    settings = settings_from_environment()
    rows: list[list[str]] = []
    ratios: list[float] = []
    for kernel, program, case in programs(options.kernel, options.arch):
        found = costs(case, options.arch, settings)
        if found is None:
            continue
        check_s, estimate_s = found
        ratios.append((check_s + estimate_s) / check_s)
        words = (f"{check_s:.2f}", f"{estimate_s:.2f}", f"{ratios[-1]:.2f}")
        rows.append([kernel, program, *words])
    print(grid(HEAD, rows, ("kernel", "program")))
    within = sum(one <= TARGET for one in ratios)
    print(
        f"\nboth / check: median {median(ratios):.2f}, geometric mean {geometric_mean(ratios):.2f},"
        f" at most {max(ratios):.2f}; {within} of {len(ratios)} within {TARGET}"
    )


if __name__ == "__main__":
    main()
