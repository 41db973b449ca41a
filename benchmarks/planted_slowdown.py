"""A slowdown of known size: one binary launched twice, once with a chain of dependent arithmetic.

The problem's reference kernel is replaced by `row_in_registers.cu`, so that the same source with
CHAIN=0 is an A/A comparison and with CHAIN=N is slower by the latency of N multiply-adds. Without
programmatic dependent launch: the next call would start under the chain and hide it.
"""

import shutil
from collections import Counter
from dataclasses import dataclass
from math import log
from pathlib import Path
from statistics import median

from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problem, load_problems
from kopt.kernels.status import Status, Verdict
from kopt.tools.bench.request import MAX_PAIRS, BenchRequest
from kopt.tools.bench.stage import bench_candidate
from kopt.tools.devices.timer import TimingDevice

SOURCE = Path(__file__).with_name("row_in_registers.cu")
WORKLOAD = "b128xh4096"
CHAINS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32)
CALIBRATION_RUNS = 3


@dataclass(frozen=True)
class Planted:
    """A problem whose reference kernel is the candidate without its chain."""

    problem: Problem
    device: TimingDevice
    settings: Settings

    def bench(self, chain: int, max_pairs: int = MAX_PAIRS, seed: int | None = None) -> BenchResult:
        """Return the candidate with `chain` multiply-adds against itself without any."""
        request = BenchRequest(
            case=Case(
                self.problem,
                self.problem.workload(WORKLOAD),
                read_candidate(self.problem.folder / "reference.cu"),
                {"CHAIN": chain},
            ),
            baselines="reference",
            min_pairs=min(100, max_pairs),
            max_pairs=max_pairs,
            seed=seed,
        )
        result = bench_candidate(request, self.device, self.settings)
        if result.status is not Status.PASSED:
            raise SystemExit(f"CHAIN={chain} does not pass: {result.status} {result.diagnostics}")
        return result


@dataclass(frozen=True)
class Calibration:
    """The chain whose slowdown is nearest to the wanted one."""

    chain: int
    slowdown: float
    """Measured over the most pairs, as a fraction: 0.01 is 1 %."""


@dataclass(frozen=True)
class Detection:
    """Verdicts of repeated benchmarks of one chain."""

    verdicts: Counter[Verdict]
    slowdowns: tuple[float, ...]
    """ln(candidate / baseline) of each."""
    half_widths: tuple[float, ...]
    """Of each log-ratio interval."""
    pairs: tuple[int, ...]

    def count(self, verdict: Verdict) -> str:
        """Return `20 of 20`."""
        return f"{self.verdicts[verdict]} of {sum(self.verdicts.values())}"


def plant(folder: Path, device: TimingDevice, settings: Settings) -> Planted:
    """Return the planted problem, made in `folder`."""
    original = load_problems()["fused_add_rmsnorm"]
    copy = folder / original.name
    shutil.copytree(original.folder, copy)
    source = SOURCE.read_text("utf-8").replace("    pdl: true\n", "")
    (copy / "reference.cu").write_text(source, "utf-8")
    return Planted(load_problem(copy), device, settings)


def calibrate(planted: Planted, wanted: float) -> Calibration:
    """Return the chain whose slowdown, median of three allocations, is nearest to `wanted`."""
    low, high = 0, len(CHAINS) - 1
    found: list[Calibration] = []
    while low <= high:
        middle = (low + high) // 2
        chain = CHAINS[middle]
        runs = [planted.bench(chain) for _ in range(CALIBRATION_RUNS)]
        slowdown = median(-_log_speedup(run) for run in runs)
        print(f"    CHAIN={chain}: {slowdown:+.3%}", flush=True)
        found.append(Calibration(chain, slowdown))
        low, high = (middle + 1, high) if slowdown < wanted else (low, middle - 1)
    return min(found, key=lambda one: abs(one.slowdown - wanted))


def detect(planted: Planted, chain: int, runs: int) -> Detection:
    """Benchmark `chain` that many times, each with its own order, layout and allocation."""
    results = [planted.bench(chain) for _ in range(runs)]
    comparisons = [result.comparisons[0] for result in results]
    return Detection(
        verdicts=Counter(comparison.verdict for comparison in comparisons),
        slowdowns=tuple(-_log_speedup(result) for result in results),
        half_widths=tuple(
            (log(one.interval[1]) - log(one.interval[0])) / 2
            for one in comparisons
            if one.interval is not None
        ),
        pairs=tuple(comparison.pairs for comparison in comparisons),
    )


def _log_speedup(result: BenchResult) -> float:
    speedup = result.comparisons[0].speedup
    if speedup is None:
        raise SystemExit(f"no comparison: {result.diagnostics}")
    return log(speedup)
