"""The shipped winners as rows of a table: what their receipts say of each kernel."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from headroom_table import Headroom

from kopt.config.gpu_specs import load_gpus
from kopt.kernels.device_facts import DeviceFacts
from kopt.kernels.problem import Problem
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
