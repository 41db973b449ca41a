"""Print what the GPU side of kopt is worth: noise, detection, latency, recovery, baselines.

Runs on a GPU host with the `gpu` extra, from an empty KOPT_HOME in a temporary folder unless --home
names one whose libraries are built. It prints one table last, with the targets beside the figures.

    .venv/bin/python benchmarks/bench_gpu.py [--device cuda:0] [--only PART ...] [--runs N]
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import exp
from pathlib import Path
from statistics import median
from typing import cast

import numpy as np
from planted_slowdown import SOURCE, WORKLOAD, Planted, calibrate, detect, plant

from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.case import Case
from kopt.kernels.input_regimes import REGIMES
from kopt.kernels.oracle import load_oracle
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import find_kernel, load_problems
from kopt.kernels.status import Status, Verdict
from kopt.tools.bench.request import BenchRequest
from kopt.tools.bench.stage import bench_candidate
from kopt.tools.check.request import cubin_paths, make_plans
from kopt.tools.check.stage import CheckRequest, check_candidate
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.device_choice import open_device
from kopt.tools.devices.device import ExecutionRequest, Program
from kopt.tools.devices.timer import TimingDevice
from kopt.tools.selftest.sample import SAMPLES

EVIL = SAMPLES / "evil_infinite_loop.cu"
KERNEL = f"fused_add_rmsnorm_{WORKLOAD}"
SPINNING_KERNEL = "silu_and_mul_b8xh14336"
SPIN_S = 2.0
SWEEP_VARIANTS = 60


@dataclass
class Table:
    """What the last lines show."""

    rows: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    def add(self, what: str, target: str, measured: str) -> None:
        """Add a row and show it at once."""
        self.rows.append((what, target, measured))
        print(f"  {what}: {measured}" + (f" (target {target})" if target else ""), flush=True)

    def print_markdown(self) -> None:
        """Print all rows."""
        print("\n| | target | measured |\n|---|---|---|")
        for row in self.rows:
            print(f"| {' | '.join(row)} |")


@dataclass(frozen=True)
class Host:
    """One device, one home and the table."""

    device: TimingDevice
    settings: Settings
    table: Table
    runs: int
    folder: Path
    problems: tuple[str, ...]
    """Those whose references are checked and whose baselines are timed."""

    def planted(self) -> Planted:
        """Return the problem with a slowdown of known size."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        return plant(folder, self.device, self.settings)


def references(host: Host) -> None:
    """Check every reference kernel at level full."""
    passed: list[str] = []
    failed: list[str] = []
    for problem in _problems(host):
        candidate = read_candidate(problem.folder / "reference.cu")
        request = CheckRequest(
            Case(problem, problem.workloads[0], candidate), "full", arch=host.device.facts.arch
        )
        result = check_candidate(request, host.device, host.settings)
        (passed if result.status is Status.PASSED else failed).append(problem.name)
    total = len(passed) + len(failed)
    text = f"{len(passed)} of {total}" + (f", not {', '.join(failed)}" if failed else "")
    host.table.add("reference kernels correct, level full", f"{total} of {total}", text)


def baselines(host: Host) -> None:
    """Bench every problem's reference against the library paths at its first workload."""
    for problem in _problems(host):
        request = BenchRequest(
            Case(problem, problem.workloads[0], read_candidate(problem.folder / "reference.cu"))
        )
        result = bench_candidate(request, host.device, host.settings)
        kernel = problem.kernel_ids[0]
        if result.comparisons:
            main = result.comparisons[0]
            floor = main.noise_floor
            noise = "" if floor is None else f", A/A ±{floor.half_width:.2%} at {floor.median:+.2%}"
            name = f"{main.baseline.name}{' PDL' if main.baseline.pdl else ''}"
            speedup = "-" if main.speedup is None else f"{main.speedup:.3f}"
            host.table.add(f"{kernel}: reference over {name}", "", f"{speedup}{noise}")
        refused = [f"{one.name}: {one.reason}" for one in result.rejected]
        if refused:
            host.table.add(f"{kernel}: refused baselines", "", "; ".join(sorted(set(refused))))


def _problems(host: Host) -> list[Problem]:
    return [problem for name, problem in load_problems().items() if name in host.problems]


def detection(host: Host) -> None:
    """A/A and a planted 1 % slowdown, repeated."""
    planted = host.planted()
    planted.bench(0)  # compiles, and measures the noise floor
    same = detect(planted, 0, host.runs)
    everything = f"{host.runs} of {host.runs}"
    widths = [exp(width) - 1 for width in same.half_widths]
    worst, usual = max(widths), median(widths)
    host.table.add(
        "A/A interval half-width at about 3 us", "<= 0.3 %", f"{usual:.3%} (worst {worst:.3%})"
    )
    text = f"{same.count(Verdict.INCONCLUSIVE)}, measured {_range(same.slowdowns)}"
    host.table.add("A/A verdict inconclusive", everything, text)
    found = calibrate(planted, 0.01)
    slowed = detect(planted, found.chain, host.runs)
    host.table.add(
        f"slowdown of {found.slowdown:.2%} (CHAIN={found.chain}) called slower",
        everything,
        f"{slowed.count(Verdict.SLOWER)}, {median(slowed.pairs):.0f} pairs in the median, "
        f"measured {_range(slowed.slowdowns)}",
    )


def _range(slowdowns: tuple[float, ...]) -> str:
    return f"{min(slowdowns):+.2%} to {max(slowdowns):+.2%}"


def latency(host: Host) -> None:
    """Wall time of check and benchmark with a warm worker, fresh sources each time."""
    problem, workload = find_kernel(KERNEL, None)

    def bench(note: str) -> tuple[float, BenchResult]:
        candidate = Candidate(f"{SOURCE.read_text('utf-8')}// {note}\n", SOURCE.name)
        request = BenchRequest(Case(problem, workload, candidate))
        started = time.perf_counter()
        result = bench_candidate(request, host.device, host.settings)
        return time.perf_counter() - started, result

    bench("starts the worker and chooses the baseline")
    fresh = [bench(f"source {turn}") for turn in range(6)]
    again = [bench(f"source {turn}") for turn in range(6)]
    checks = median(result.check.elapsed_s for _, result in fresh)
    result = again[-1][1]
    parts = f"{median(elapsed_s for elapsed_s, _ in again):.2f} s"
    for comparison in result.comparisons:
        if comparison.speedup is not None and comparison.interval is not None:
            low, high = comparison.interval
            name = f"{comparison.baseline.name}{' PDL' if comparison.baseline.pdl else ''}"
            parts += f"; {comparison.speedup:.3f} ({low:.3f} to {high:.3f}) over {name}"
    text = (
        f"{median(elapsed_s for elapsed_s, _ in fresh):.2f} s, {checks:.2f} s of it nvcc and check"
    )
    host.table.add(f"check and benchmark of {KERNEL}, new source", "", text)
    host.table.add(f"check and benchmark of {KERNEL}, compiled before", "<= 1.5 s", parts)


def sweep(host: Host) -> None:
    """Wall time of `kopt run` over the tune values of one source."""
    source = SOURCE.read_text("utf-8")
    chains = source.index("CHAIN: [")
    swept = host.folder / "sweep.cu"
    end = source.index("]", chains)
    swept.write_text(f"{source[:chains]}CHAIN: [0{source[end:]}", "utf-8")
    command = [sys.executable, "-P", "-m", "kopt", "run", "--kernel", KERNEL]
    command += ["--start", str(swept), "--device", host.device.name, "--json"]
    command += ["--budget", str(SWEEP_VARIANTS), "--rounds", "20"]
    started = time.perf_counter()
    environment = {**os.environ, "KOPT_HOME": str(host.settings.home), "KOPT_GPU_IDLE_S": "0"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    elapsed_s = time.perf_counter() - started
    (host.folder / "sweep.json").write_text(done.stdout, "utf-8")
    text = f"{elapsed_s:.1f} s, exit {done.returncode}"
    if done.returncode > 1:
        text += f": {done.stderr.strip()[-300:]}"
    host.table.add(f"sweep of {SWEEP_VARIANTS} variants, compile included", "<= 60 s", text)


def recovery(host: Host) -> None:
    """Time from the end of a spinning kernel's limit to the next candidate's result."""
    reference = load_problems()["silu_and_mul"].folder / "reference.cu"
    spinning = _execution(host, read_candidate(EVIL), SPINNING_KERNEL)
    honest = _execution(host, read_candidate(reference), SPINNING_KERNEL)
    host.device.execute(honest)
    started = time.perf_counter()
    ended = host.device.execute(replace(spinning, timeout_s=SPIN_S))
    killed_s = time.perf_counter() - started - SPIN_S
    started = time.perf_counter()
    after = host.device.execute(honest)
    next_s = time.perf_counter() - started
    text = f"{ended.status} {killed_s:.2f} s after its limit, next {after.status} in {next_s:.2f} s"
    host.table.add("recovery from a spinning kernel", "<= 1 s", text)


def _execution(host: Host, candidate: Candidate, kernel: str) -> ExecutionRequest:
    problem, workload = find_kernel(kernel, None)
    arch = host.device.facts.arch
    check = CheckRequest(Case(problem, workload, candidate), "quick", arch=arch)
    compiled = compile_candidate(
        CompileRequest(Case(problem, workload, candidate), archs=(arch,)), host.settings
    )
    gpu = host.device.gpu
    if compiled.status is not Status.PASSED:
        raise SystemExit(f"{candidate.name} does not compile: {compiled.diagnostics}")
    plans = make_plans(check, gpu).final(compiled, gpu, simulated=False)
    name = workload.name
    program = Program(candidate, problem, plans[name], cubin_paths(compiled)[name])
    inputs = load_oracle(problem).make_inputs(workload, np.random.default_rng(1), REGIMES[0])
    return ExecutionRequest(program, inputs, poison=0xA5)


PARTS: dict[str, Callable[[Host], None]] = {
    "references": references,
    "recovery": recovery,
    "baselines": baselines,
    "latency": latency,
    "detection": detection,
    "sweep": sweep,
}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure the GPU side of kopt.")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--runs", type=int, default=20, help="repeats of each detection")
    parser.add_argument("--problem", nargs="+", default=list(load_problems()))
    parser.add_argument("--home", type=Path, help="KOPT_HOME to use and to keep")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kopt-bench-") as scratch:
        home = options.home or Path(scratch) / "home"
        settings = replace(settings_from_environment(), home=home.absolute(), gpu_idle_s=0.0)
        with open_device(options.device, settings) as device:
            timing = cast(TimingDevice, device)
            problems = tuple(options.problem)
            host = Host(timing, settings, Table(), options.runs, Path(scratch), problems)
            for name in _ordered(options.only):
                print(f"{name}", flush=True)
                started = time.perf_counter()
                PARTS[name](host)
                print(f"  {time.perf_counter() - started:.1f} s", flush=True)
            facts = timing.facts
    print(f"\n{facts.name}, driver {facts.driver_version}, CUDA {facts.cuda_version}")
    host.table.print_markdown()


def _ordered(wanted: list[str]) -> Iterator[str]:
    return (name for name in PARTS if name in wanted)


if __name__ == "__main__":
    main()
