"""Print how long the compile stage takes for the packaged reference kernels: its three targets.

`nvcc` and `NVRTC` are whole stages that find nothing in the cache, from the header to the facts of
the cubin; `cached` is the same stage again. The sandbox is the strongest of this machine. Times are
wall times, median (least) of the repeats; on a machine with other load look at the least.

    .venv/bin/python benchmarks/bench_compile.py [--repeats N] [--arch sm_100a] [--problem NAME]
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.status import Status
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.sandbox.ladder import available_level

TARGETS = "target: nvcc <= 0.8 s, NVRTC <= 0.2 s, cached <= 10 ms"
DEFAULT_PROBLEMS = ("add_rmsnorm_fp4quant", "nvfp4_quantize", "silu_mul_fp4quant", "merge_state")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time the compile stage.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--arch", default="sm_100a")
    parser.add_argument(
        "--problem", action="append", help="default: " + ", ".join(DEFAULT_PROBLEMS)
    )
    options = parser.parse_args()
    problems = load_problems()
    with tempfile.TemporaryDirectory(prefix="kopt-bench-") as home:
        settings = replace(settings_from_environment(), home=Path(home))
        print(f"{options.arch}, {options.repeats} repeats, sandbox {available_level(settings)}")
        print(TARGETS)
        print(f"{'problem':<36}{'nvcc s':>16}{'NVRTC s':>16}{'cached ms':>16}")
        for name in options.problem or DEFAULT_PROBLEMS:
            request = reference_request(problems[name], options.arch)
            row = measure(request, settings, options.repeats)
            print(f"{name:<36}" + "".join(f"{shown(times):>16}" for times in row), flush=True)


def reference_request(problem: Problem, arch: str) -> CompileRequest:
    """Return the compile of a problem's reference kernel."""
    source = (problem.folder / "reference.cu").read_text("utf-8")
    return CompileRequest(Case(problem, problem.workloads[0], Candidate(source)), (arch,))


def measure(
    request: CompileRequest, settings: Settings, repeats: int
) -> tuple[list[float], list[float], list[float]]:
    """Return seconds of nvcc, seconds of NVRTC and milliseconds of the cached stage."""
    case = request.case
    # A comment of its own makes each repeat a source that the cache does not know.
    fresh = [
        replace(request, case=replace(case, candidate=Candidate(text)))
        for number in range(repeats + 1)
        for text in [f"{case.candidate.source}// repeat {number}\n"]
    ]
    fast = [replace(one, compiler="nvrtc") for one in fresh]
    timed(fast[-1], settings)  # starts the NVRTC process, which a sweep does once
    timed(fresh[-1], settings)
    nvcc = [timed(one, settings) for one in fresh[:-1]]
    nvrtc = [timed(one, settings) for one in fast[:-1]]
    cached = [1e3 * timed(one, settings) for one in fresh[:-1]]
    return nvcc, nvrtc, cached


def timed(request: CompileRequest, settings: Settings) -> float:
    """Return the seconds of one stage that must pass with the compiler asked for."""
    started = time.perf_counter()
    result = compile_candidate(request, settings)
    elapsed_s = time.perf_counter() - started
    if result.status != Status.PASSED:
        raise SystemExit(f"{result.kernel}: {result.status}: {result.diagnostics}")
    if result.builds[0].toolchain.compiler != request.compiler:
        raise SystemExit(f"{result.kernel}: {request.compiler} handed it on")
    return elapsed_s


def shown(times: Sequence[float]) -> str:
    """Return the median and the least."""
    return f"{statistics.median(times):.3g} ({min(times):.3g})"


if __name__ == "__main__":
    main()
