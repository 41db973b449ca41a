"""Print estimated times beside measured ones: of the shipped winners, and of all that was tried.

    .venv/bin/python benchmarks/bench_estimate.py [--kernel PART ...] [--tried]

Nothing is measured here. The times come from the winners' receipts, which have the reference kernel
beside the winner, and with --tried from the records under benchmarks/tried; the estimates are made
now, for the architecture that was measured. About a second a kernel, and some minutes for --tried.
"""

import argparse
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations
from math import exp, log
from statistics import geometric_mean, mean, median

from markdown_tables import grid
from tried_records import FOLDER, TriedCandidate, read_tried

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
TRIED = ("kernel", "tried", "measured us", "estimated / measured", "off by", "in order + tied")
APART = 0.05
"""Two candidates count as ordered by their measurement from this difference on."""
TIED = 0.01
"""Estimates nearer than this are the same."""


@dataclass(frozen=True)
class Pair:
    """One program: its time on a GPU and in the model."""

    measured_us: float
    estimated_us: float

    @property
    def factor(self) -> float:
        """Estimated / measured."""
        return self.estimated_us / self.measured_us


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


def tried_pairs(parts: list[str], settings: Settings) -> dict[str, list[Pair]]:
    """Return what was measured of each kernel, every program once."""
    times: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    programs: dict[tuple[str, str, str], Program] = {}
    for path in sorted(FOLDER.glob("*.jsonl")):
        tried = read_tried(path)
        sources = {one.sha: one for one in tried.sources}
        for one in tried.candidates:
            source = sources.get(one.source)
            if source is None or one.kernel_us is None or not _is_wanted(one, parts):
                continue
            key = (one.kernel, source.code, str(sorted(one.tune.items())))
            times[key].append(one.kernel_us)
            text = Candidate(source.text, source.name)
            programs[key] = Program(one.kernel, text, one.arch, one.tune)
    pairs: dict[str, list[Pair]] = defaultdict(list)
    for key, program in programs.items():
        pair = program.pair(median(times[key]), settings)
        if pair is not None:
            pairs[program.kernel].append(pair)
    return pairs


def _is_wanted(one: TriedCandidate, parts: list[str]) -> bool:
    return one.provenance == "measured" and (not parts or any(part in one.kernel for part in parts))


def tried_row(kernel: str, pairs: list[Pair]) -> list[str]:
    """Return how far off a kernel's candidates are, and how many pairs are in order or tied."""
    distinct = [
        (one, other)
        for one, other in combinations(sorted(pairs, key=lambda pair: pair.measured_us), 2)
        if other.measured_us > (1 + APART) * one.measured_us
    ]
    steps = [log(other.estimated_us / one.estimated_us) for one, other in distinct]
    right = sum(step > TIED for step in steps)
    tied = sum(abs(step) <= TIED for step in steps)
    measured = [pair.measured_us for pair in pairs]
    return [
        kernel,
        str(len(pairs)),
        f"{min(measured):.2f} to {max(measured):.2f}",
        f"{geometric_mean([pair.factor for pair in pairs]):.2f}",
        f"{exp(mean(abs(log(pair.factor)) for pair in pairs)):.2f}",
        f"{right} + {tied} of {len(distinct)}",
    ]


def main() -> None:
    """Print one table, or both."""
    parser = argparse.ArgumentParser(description="Estimated beside measured times.")
    parser.add_argument("--kernel", nargs="+", default=[], help="parts of kernel ids")
    parser.add_argument("--tried", action="store_true", help="all that was tried, too: minutes")
    options = parser.parse_args()
    settings = settings_from_environment()
    rows = [winner_row(kernel, receipt, settings) for kernel, receipt in shipped(options.kernel)]
    print(grid(WINNERS, [row for row in rows if row], ("kernel",)))
    if options.tried:
        found = tried_pairs(options.kernel, settings)
        print(f"\n{grid(TRIED, [tried_row(*item) for item in found.items()], ('kernel',))}")


if __name__ == "__main__":
    main()
