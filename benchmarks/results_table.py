"""Print the table of the shipped winners from their receipts, or write it into documents.

    .venv/bin/python benchmarks/results_table.py [--headroom headroom.json] [--write FILE ...]

A document takes the table between two lines of its own:

    <!-- results: written by benchmarks/results_table.py -->
    <!-- end of results -->

or, where the first of them says `results in short`, four of its rows and the means. Copies are
those of benchmarks/headroom.json where that file is there (`bench_headroom.py`).
"""

import argparse
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median

from headroom_table import KEPT, Headroom
from markdown_tables import classes, grid, insert_between

from kopt.config.gpu_specs import load_gpus
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.receipt import Receipt, WorkloadEvidence
from kopt.kernels.roofline import roofline, workload_bytes
from kopt.tools.bench.receipt_file import read_receipt
from kopt.tools.bench.verify_all import SUFFIX

LAUNCH_DOMINATED = "*"
"""Behind a percentage of the roofline where an empty kernel takes longer than the bytes."""


@dataclass(frozen=True)
class Result:
    """One kernel: its winner against its baseline."""

    kernel: str
    rows: int
    shape: str
    """`B=8 H=4096`."""
    baseline: str
    library: str | None
    baseline_us: float
    """Median over the measurements of their median, as `us`."""
    us: float
    speedup: float
    interval: tuple[float, float]
    """From the least lower to the greatest upper end of the measurements' 95 % intervals."""
    measurements: int
    roofline: str
    """Percent of the data sheet's bandwidth; a dash where no data sheet fits."""
    copy: str
    """Percent of the bandwidth of a copy of as many bytes; a dash where none was measured."""
    is_copy_elsewhere: bool
    """Whether the copy was measured on another GPU of the model."""
    flagged: bool
    device: DeviceFacts
    date: str


def read_results(problems: Sequence[Problem], headroom: Headroom | None = None) -> list[Result]:
    """Return a row for each receipt in the problems' folders of winners.

    Args:
        problems: In the order of the rows.
        headroom: Measured copies; those of another model of GPU are left out.

    Raises:
        ToolError: A receipt is damaged.
        SystemExit: A receipt does not cover the workload that its name says.
    """
    return [row for problem in problems for row in _rows(problem, headroom)]


def _rows(problem: Problem, headroom: Headroom | None) -> Iterator[Result]:
    for workload in problem.workloads:
        for path in sorted((problem.folder / "winners").glob(f"{workload.name}.*{SUFFIX}")):
            receipt = read_receipt(path)
            covered = [one for one in receipt.workloads if one.workload == workload.name]
            if len(covered) != 1:
                raise SystemExit(f"{path} says nothing of {workload.name}")
            yield _row(problem, receipt, covered[0], headroom)


def _row(
    problem: Problem, receipt: Receipt, evidence: WorkloadEvidence, headroom: Headroom | None
) -> Result:
    workload = problem.workload(evidence.workload)
    measured = evidence.measurements
    us = median(one.latency.median_us for one in measured)
    variable = [name for name, expression in problem.axes.items() if expression is None]
    return Result(
        kernel=evidence.kernel,
        rows=workload.axes[problem.row_axis or ""],
        shape=" ".join(f"{name}={workload.axes[name]}" for name in variable),
        baseline=evidence.baseline.label,
        library=evidence.baseline.library,
        baseline_us=median(one.baseline_latency.median_us for one in measured),
        us=us,
        speedup=evidence.speedup,
        interval=(
            min(one.interval[0] for one in measured),
            max(one.interval[1] for one in measured),
        ),
        measurements=len(measured),
        roofline=_roofline(problem, receipt.device, evidence.workload, us),
        copy=_copy(headroom, receipt.device, evidence.kernel, us),
        is_copy_elsewhere=headroom is not None and headroom.gpu.uuid != receipt.device.uuid,
        flagged=bool(receipt.flagged),
        device=receipt.device,
        date=receipt.promoted_at[:10],
    )


def _roofline(problem: Problem, device: DeviceFacts, workload: str, us: float) -> str:
    model = workload_bytes(problem, problem.workload(workload))
    for sheet in load_gpus().values():
        same_chip = (sheet.compute_capability, sheet.sm_count) == (
            device.compute_capability,
            device.sm_count,
        )
        if same_chip and re.search(rf"\b{sheet.name}\b", device.name):
            floor = roofline(model, sheet)
            mark = LAUNCH_DOMINATED if floor.is_launch_dominated else ""
            return f"{floor.memory_floor_us / us:.0%}{mark}"
    return "-"


def _copy(headroom: Headroom | None, device: DeviceFacts, kernel: str, us: float) -> str:
    if headroom is None or headroom.gpu.name != device.name:
        return "-"
    for row in headroom.rows:
        if row.kernel == kernel:
            return f"{row.copy_time.latency.median_us / us:.0%}"
    return "-"


MARKS = ("<!-- results: written by benchmarks/results_table.py -->", "<!-- end of results -->")
SHORT_MARKS = (
    "<!-- results in short: written by benchmarks/results_table.py -->",
    "<!-- end of results in short -->",
)
SHORT_KERNELS = (
    "silu_and_mul_b8xh14336",
    "fused_add_rmsnorm_quant_b8xh8192",
    "fused_add_rmsnorm_fp8_block_quant_b128xh7168",
    "fused_add_rmsnorm_b1024xh8192",
)
"""The greatest gain, the greatest without an outlying baseline, one of 128 rows, the least."""
VERIFY = ".venv/bin/kopt verify kernels/problems/*/winners/*.receipt.json"
_COLUMNS = (
    "kernel",
    "shape",
    "baseline",
    "baseline us",
    "kopt us",
    "speedup",
    "95 % interval",
    "of roofline",
    "of a copy",
)
_SHORT_COLUMNS = ("kernel", "baseline", "baseline us", "kopt us", "speedup", "95 % interval")
_TEXTS = ("kernel", "shape", "baseline")


def results_markdown(results: Sequence[Result]) -> str:
    """Return one table for each device and driver, with the means below it."""
    if not results:
        return "No winner is shipped yet.\n"
    groups: dict[tuple[str, str], list[Result]] = {}
    for row in results:
        groups.setdefault((row.device.name, row.device.driver_version), []).append(row)
    parts = [_group(rows) for rows in groups.values()]
    parts.append(f"Measured again by one command: `{VERIFY}`.")
    return "\n\n".join(parts) + "\n"


def short_markdown(results: Sequence[Result]) -> str:
    """Return the rows of `SHORT_KERNELS` and the means of all `results`, for a first page."""
    shown = [row for name in SHORT_KERNELS for row in results if row.kernel == name]
    cells = [_cells(row) for row in shown]
    picked = [[row[_COLUMNS.index(one)] for one in _SHORT_COLUMNS] for row in cells]
    devices = " and ".join(sorted({row.device.name for row in results}))
    return (
        f"{grid(_SHORT_COLUMNS, picked, _TEXTS)}\n\n{devices}, measured; all"
        f" {len(results)} kernels:\n\n" + "\n".join(_means(results)) + "\n"
    )


def shipped_results(headroom: Path = KEPT) -> list[Result]:
    """Return the winners that come with the problems, with the copies measured in `headroom`."""
    measured = None
    if headroom.is_file():
        measured = Headroom.model_validate_json(headroom.read_text("utf-8"))
    return read_results(list(load_problems().values()), measured)


def with_tables(document: str, results: Sequence[Result]) -> str:
    """Return `document` with the table that it has a place for.

    Raises:
        ValueError: It has no place for either table.
    """
    if SHORT_MARKS[0] in document:
        return insert_between(document, SHORT_MARKS, short_markdown(results))
    return insert_between(document, MARKS, results_markdown(results))


def _group(rows: Sequence[Result]) -> str:
    device = rows[0].device
    dates = " to ".join(
        dict.fromkeys((min(row.date for row in rows), max(row.date for row in rows)))
    )
    named = {part for row in rows if row.library is not None for part in row.library.split(", ")}
    libraries = ", ".join(sorted(named))
    counts = " or ".join(str(count) for count in sorted({row.measurements for row in rows}))
    columns = _COLUMNS if any(row.copy != "-" for row in rows) else _COLUMNS[:-1]
    cells = [_cells(row)[: len(columns)] for row in rows]
    lines = [
        f"{device.name}, driver {device.driver_version}, CUDA {device.cuda_version}, {dates}"
        f"{f', baselines of {libraries}' if libraries else ''}.",
        grid(columns, cells, _TEXTS),
        "\n".join(_means(rows)),
        _explanation(rows, counts),
    ]
    return "\n\n".join(lines)


def _cells(row: Result) -> tuple[str, ...]:
    low, high = row.interval
    return (
        f"`{row.kernel}`{' (flagged)' if row.flagged else ''}",
        row.shape,
        row.baseline,
        f"{row.baseline_us:.3f}",
        f"{row.us:.3f}",
        f"{row.speedup:.3f}x",
        f"{low:.3f} to {high:.3f}",
        row.roofline,
        row.copy,
    )


def _means(rows: Sequence[Result]) -> list[str]:
    named = [*classes(rows), ("all", list(rows))]
    means = [
        (name, len(some), geometric_mean([row.speedup for row in some])) for name, some in named
    ]
    return [f"- geometric mean, {name} ({count}): {mean:.2f}x" for name, count, mean in means]


def _explanation(rows: Sequence[Result], counts: str) -> str:
    parts = [
        "All measured. Time: the median of one call, L2 cold. Speedup: baseline time / kernel time"
        f" in pairs, the median of {counts} measurements, each in a fresh process. Interval: from"
        " the lowest to the highest end of their 95 % intervals. The baseline is the fastest"
        " library path that passes its check. *of roofline* is computed: the call's bytes at the"
        " data sheet's bandwidth / the time"
    ]
    if any(row.roofline.endswith(LAUNCH_DOMINATED) for row in rows):
        parts.append(
            f" ({LAUNCH_DOMINATED} an empty kernel takes longer than the bytes, so the percentage"
            " says little)"
        )
    parts.append(".")
    if any(row.copy != "-" for row in rows):
        where = (
            ", on different GPUs of the model" if any(row.is_copy_elsewhere for row in rows) else ""
        )
        parts.append(
            " *of a copy*: the time of a copy of as many bytes / the time, both measured but not"
            f" together{where}: good to some percent."
        )
    if any(row.flagged for row in rows):
        parts.append(" *flagged*: the receipt names something in the binary that raises scrutiny.")
    return "".join(parts)


def main() -> None:
    """Print or write."""
    parser = argparse.ArgumentParser(description="The shipped winners as a table.")
    parser.add_argument("--headroom", type=Path, default=KEPT, help="of bench_headroom.py")
    parser.add_argument("--write", type=Path, nargs="+", default=[], metavar="FILE")
    options = parser.parse_args()
    results = shipped_results(options.headroom)
    for path in options.write:
        try:
            path.write_text(with_tables(path.read_text("utf-8"), results), "utf-8")
        except ValueError as error:
            raise SystemExit(f"{path}: {error}") from error
    if not options.write:
        print(results_markdown(results), end="")


if __name__ == "__main__":
    main()
