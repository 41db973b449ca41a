"""Print estimated times beside measured ones, of the shipped winners and the reference kernels.

    .venv/bin/python benchmarks/bench_estimate.py [--kernel PART ...]

Nothing is measured here. The times come from the winners' receipts, which have the reference kernel
beside the winner; the estimates are made now, for the architecture that was measured. A few seconds
a kernel. What was tried beside them is scored by score_estimate.py.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import median

from markdown_tables import grid

from kopt.config.gpu_specs import gpu_for_arch
from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import find_kernel, load_problems
from kopt.kernels.receipt import Receipt
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.bench.verify_all import SUFFIX
from kopt.tools.profiling.stage import ProfileDevices, ProfileRequest, profile_candidate
from kopt.tools.sim.device import SimDevice

WINNERS = ("kernel", "reference us", "winner us", "ratio, measured", "estimated")


@dataclass(frozen=True)
class Pair:
    """One program: its time on a GPU and in the model."""

    measured_us: float
    estimated_us: float


@dataclass(frozen=True)
class Program:
    """What is estimated."""

    kernel: str
    candidate: Candidate
    arch: str
    tune: dict[str, int] = field(default_factory=dict[str, int])

    def pair(self, measured_us: float, settings: Settings) -> Pair | None:
        """Return its times; None where it has no estimate."""
        problem, workload = find_kernel(self.kernel)
        request = ProfileRequest(
            Case(problem, workload, self.candidate, self.tune), self.arch, counters=False
        )
        devices = ProfileDevices(SimDevice(settings))
        estimate = profile_candidate(request, settings, devices).estimate
        return None if estimate is None else Pair(measured_us, estimate.latency_us)


def shipped(parts: list[str]) -> Iterator[tuple[str, Receipt]]:
    """Yield the receipt of each kernel with a winner, if its GPU is the one that is estimated."""
    for problem in load_problems().values():
        for workload in problem.workloads:
            kernel = problem.kernel_id(workload)
            for path in (problem.folder / "winners").glob(f"{workload.name}.*{SUFFIX}"):
                receipt = read_receipt(path)
                is_wanted = not parts or any(part in kernel for part in parts)
                if is_wanted and gpu_for_arch(receipt.arch).name in receipt.device.name.split():
                    yield kernel, receipt


def winner_row(kernel: str, receipt: Receipt, settings: Settings) -> list[str] | None:
    """Return a winner and its reference kernel, measured and estimated."""
    evidence = next(one for one in receipt.workloads if one.kernel == kernel)
    others = [other for one in evidence.measurements for other in one.others]
    reference_us = [
        other.baseline_latency.median_us
        for other in others
        if other.baseline.name == "reference" and other.baseline_latency is not None
    ]
    winner_us = median(one.latency.median_us for one in evidence.measurements)
    problem, _ = find_kernel(kernel)
    text = Candidate(receipt.source, receipt.source_name)
    winner = Program(kernel, text, receipt.arch).pair(winner_us, settings)
    start = read_candidate(problem.folder / "reference.cu")
    if not reference_us or winner is None:
        return None
    reference = Program(kernel, start, receipt.arch).pair(median(reference_us), settings)
    if reference is None:
        return None
    return [
        kernel,
        f"{reference.measured_us:.2f} / {reference.estimated_us:.2f}",
        f"{winner.measured_us:.2f} / {winner.estimated_us:.2f}",
        f"{reference.measured_us / winner.measured_us:.2f}",
        f"{reference.estimated_us / winner.estimated_us:.2f}",
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Estimated beside measured times.")
    parser.add_argument("--kernel", nargs="+", default=[], help="parts of kernel ids")
    options = parser.parse_args()
    settings = settings_from_environment()
    rows = [winner_row(kernel, receipt, settings) for kernel, receipt in shipped(options.kernel)]
    print(grid(WINNERS, [row for row in rows if row], ("kernel",)))


if __name__ == "__main__":
    main()
