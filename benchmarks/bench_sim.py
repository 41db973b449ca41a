"""Print what the simulator costs: building, switching, checking accesses, whole checks.

Everything starts from an empty KOPT_HOME in a temporary folder. Times are wall times, the least of
the repeats; whole checks run once each.

    .venv/bin/python benchmarks/bench_sim.py [--repeats N] [--problem NAME]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import CheckLevel
from kopt.kernels.plan import Argument, Launch, LaunchPlan
from kopt.kernels.problem import Problem, TensorSpec, Workload
from kopt.kernels.problem_loader import load_problems
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.devices.device import ExecutionRequest, Program
from kopt.tools.sandbox.ladder import available_level
from kopt.tools.sim.device import SimDevice
from kopt.tools.sim.toolset import find_toolset

THREADS = 256
# Each thread works on its own elements. With BARRIERS it gives way that often; with LOADS it reads
# and writes that often.
SOURCE = """
extern "C" __global__ void k(float* out) {
  const int t = threadIdx.x;
  out[t] = out[t + blockDim.x] = 0;
  for (int i = 0; i < BARRIERS; ++i) __syncthreads();
  for (int i = 0; i < LOADS; ++i) out[t + i % 2 * blockDim.x] += 1;
}
"""
QUICK = "add_rmsnorm_fp4quant_b128xh2048"
TARGETS = "target: quick of " + QUICK + " <= 2 s, full of any candidate <= 30 s, compile included"


@dataclass(frozen=True)
class Bench:
    """One home and one device for all rows of the table."""

    settings: Settings
    device: SimDevice
    repeats: int

    def least_s(self, action: Callable[[], object]) -> float:
        """Return the least seconds that `action` took."""
        taken: list[float] = []
        for _ in range(self.repeats):
            started = time.perf_counter()
            action()
            taken.append(time.perf_counter() - started)
        return min(taken)

    def run_s(self, barriers: int, loads: int) -> float:
        """Return the least seconds of one execution; the program is built before."""
        request = ExecutionRequest(program(barriers, loads), {}, poison=0xA5)
        self.device.execute(request)
        return self.least_s(lambda: self.device.execute(request))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Time the simulator.")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--problem", action="append", help="default: every packaged problem")
    options = parser.parse_args()
    problems = load_problems()
    with tempfile.TemporaryDirectory(prefix="kopt-bench-") as home:
        settings = replace(settings_from_environment(), home=Path(home))
        level = available_level(settings)
        print(f"{settings.jobs} workers, {options.repeats} repeats, sandbox {level}\n{TARGETS}")
        bench = Bench(settings, SimDevice(settings), options.repeats)
        print_parts(bench)
        print_checks(bench, problems, options.problem or sorted(problems))


def program(barriers: int, loads: int) -> Program:
    """Return one block of THREADS threads that does nothing else."""
    axes = {"N": 2 * THREADS}
    problem = Problem(
        name="bench",
        op_type="bench",
        description="",
        axes={"N": None},
        tensors=(TensorSpec(name="out", role="out", dtype="float32", shape=("N",)),),
        row_axis="N",
        workloads=(Workload(name="n", axes=axes),),
        tolerance="bf16",
        folder=Path(),
    )
    launch = Launch(
        kernel="k",
        grid=(1, 1, 1),
        block=(THREADS, 1, 1),
        arguments=(Argument(kind="tensor", name="out"),),
    )
    defines = {"BARRIERS": barriers, "LOADS": loads}
    plan = LaunchPlan(workload="n", axes=axes, defines=defines, launches=(launch,))
    return Program(Candidate(SOURCE), problem, plan)


def print_parts(bench: Bench) -> None:
    """Print the rows that a user never sees alone."""
    started = time.perf_counter()
    find_toolset(bench.settings)
    print(f"{'toolset, once per g++ and version':<52}{time.perf_counter() - started:>10.2f} s")
    numbers = iter(range(1, 100))
    built = bench.least_s(lambda: bench.device.prepare(program(0, next(numbers))))
    print(f"{'program of a small kernel':<52}{built:>10.2f} s")
    idle = bench.run_s(0, 0)
    print(f"{'execution of an empty kernel':<52}{idle * 1e3:>10.1f} ms")
    barriers, loads = 20_000, 20_000
    per_switch = (bench.run_s(barriers, 0) - idle) / (barriers * THREADS)
    print(
        f"{'block barrier, per thread (one fiber switch and back)':<52}{per_switch * 1e9:>9.1f} ns"
    )
    per_access = (bench.run_s(0, loads) - idle) / (2 * loads * THREADS)
    print(f"{'checked global access':<52}{per_access * 1e9:>10.1f} ns")


def print_checks(bench: Bench, problems: dict[str, Problem], names: list[str]) -> None:
    """Print one whole check per problem, compile included, and quick of the first NVFP4 kernel."""
    problem = problems["add_rmsnorm_fp4quant"]
    # Builds the sandbox's launcher and the include tree: once per machine.
    first = CompileRequest(Case(problem, problem.workloads[0], reference(problem)), ("sm_100a",))
    compile_candidate(first, bench.settings)
    print(f"{'quick of ' + QUICK:<52}{check_s(bench, problem, 'quick'):>10.2f} s")
    for name in names:
        elapsed = check_s(bench, problems[name], "full")
        print(f"{'full of ' + name:<52}{elapsed:>10.2f} s", flush=True)


def reference(problem: Problem) -> Candidate:
    """Return the problem's reference kernel."""
    return Candidate((problem.folder / "reference.cu").read_text("utf-8"), "reference.cu")


def check_s(bench: Bench, problem: Problem, level: CheckLevel) -> float:
    """Return the seconds of one check from the source on; a check must pass.

    A comment makes the source a new one, so that nothing of it is in a cache.
    """
    source = (
        reference(problem).source + f"\n// {level} {np.random.default_rng().integers(1 << 62)}\n"
    )
    request = CheckRequest(Case(problem, problem.workloads[0], Candidate(source)), level)
    started = time.perf_counter()
    result = check_candidate(request, bench.device, bench.settings)
    elapsed = time.perf_counter() - started
    if result.status != "passed":
        raise SystemExit(f"{problem.name}: {result.status}: {result.diagnostics}")
    return elapsed


if __name__ == "__main__":
    main()
