"""Print what starting blocks costs: empty kernels of several grids and blocks, in one session each.

    .venv/bin/python benchmarks/bench_launches.py [--device cuda:0] [--json FILE]

Empty kernels are replayed as beside any benchmark: CUDA graphs over rotating buffer sets. The sets
are small, so that a graph holds many launches and its own start hardly shows. The block term of the
time model (tools/estimate/machine/block_starts.py) stands on these figures.
"""

import argparse
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import cast

from headroom_sessions import make_case
from markdown_tables import grid

from kopt.config.settings import Settings, settings_from_environment
from kopt.kernels.plan import Launch, LaunchPlan
from kopt.kernels.problem import Workload
from kopt.kernels.problem_loader import load_problem
from kopt.tools.bench.plain_copy import FOLDER
from kopt.tools.bench.timed_case import timing_request
from kopt.tools.bench.unpaired_times import time_sides
from kopt.tools.device_choice import open_device
from kopt.tools.devices.timer import EmptySide, TimingDevice, TimingFailure

GRIDS = (1, 132, 448, 1024, 1792, 3584, 8192)
BLOCKS = (32, 64, 128, 256, 512, 1024)
WORDS = 1 << 17
"""The words of 16 bytes that device_copy reads, and as many that it writes: 4 MB a set."""


@dataclass(frozen=True)
class EmptyTime:
    """One launch shape."""

    pdl: bool
    blocks: int
    threads: int
    """Of a block."""
    us: float
    """Median of one launch in a graph, measured."""


def time_empty(threads: int, device: TimingDevice, settings: Settings) -> list[EmptyTime]:
    """Return the times of all grids of blocks of `threads`, measured side by side."""
    axes = {"N": 1, "R": WORDS, "W": WORDS, "R8": 8 * WORDS, "W8": 8 * WORDS}
    workload = Workload(name=f"w{WORDS}", axes=axes)
    problem = load_problem(FOLDER).model_copy(update={"workloads": (workload,)})
    case = make_case(problem, workload, device, settings)
    shapes = [(pdl, blocks) for pdl in (False, True) for blocks in GRIDS]
    sides = tuple(_empty(workload, blocks, threads, pdl=pdl) for pdl, blocks in shapes)
    timed = time_sides(case, timing_request(case, sides))
    if isinstance(timed, TimingFailure):
        raise SystemExit(f"empty kernels fail: {timed.outcome.status}")
    return [
        EmptyTime(pdl, blocks, threads, latency.median_us)
        for (pdl, blocks), (_, latency) in zip(shapes, timed, strict=True)
    ]


def table(times: list[EmptyTime]) -> str:
    """Return microseconds of a launch: a row for each grid, a column for each block."""
    found = {(one.pdl, one.blocks, one.threads): one.us for one in times}
    rows = [
        ["on" if pdl else "off", f"{blocks:,}", *(f"{found[pdl, blocks, t]:.3f}" for t in BLOCKS)]
        for pdl in (False, True)
        for blocks in GRIDS
    ]
    return grid(["PDL", "blocks", *(f"{threads} threads" for threads in BLOCKS)], rows, ())


def _empty(workload: Workload, blocks: int, threads: int, *, pdl: bool) -> EmptySide:
    launch = Launch(
        kernel="empty", grid=(blocks, 1, 1), block=(threads, 1, 1), pdl=pdl, arguments=()
    )
    plan = LaunchPlan(workload=workload.name, axes=workload.axes, defines={}, launches=(launch,))
    return EmptySide(plan=plan)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Measure what starting blocks costs.")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--json", type=Path, help="file for the figures")
    options = parser.parse_args()
    settings = settings_from_environment()
    with open_device(options.device, settings) as device:
        timing = cast(TimingDevice, device)
        times = [time for t in BLOCKS for time in time_empty(t, timing, settings)]
        print(f"{timing.facts.name}, driver {timing.facts.driver_version}. Measured, us a launch.")
    print(f"\n{table(times)}")
    if options.json is not None:
        rows = [asdict(one) for one in times]
        options.json.write_text(json.dumps(rows, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
