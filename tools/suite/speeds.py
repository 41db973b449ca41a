"""How fast a task's kernel is over one baseline: one number a task, of paired measurements.

A task with several workloads has the geometric mean of theirs. Nothing is estimated here: what was
not measured has no speed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log
from statistics import fmean
from typing import Literal

from kopt.kernels.bench_result import Comparison

from .sol_score import sol_score
from .task_result import SuiteTaskResult, TimedWorkload

Over = Literal["best", "eager", "compile", "compile_max", "reference"]
"""best: the fastest library path of each workload, which need not be PyTorch's. reference: the
kernel that the problem's search begins with."""

BASELINES: dict[Over, str] = {
    "eager": "torch_eager",
    "compile": "torch_compile",
    "compile_max": "torch_compile_max",
    "reference": "reference",
}
"""Names of baselines in problem.yaml."""
TIMED: tuple[Over, ...] = ("eager", "compile", "compile_max")
"""Baselines that a run may be held to."""


@dataclass(frozen=True)
class TaskSpeed:
    """The speed of one task's kernel."""

    speedup: float
    """Baseline time over the kernel's."""
    proven: float | None
    """The lower end of the 95 % interval; None where the source of the times has none."""
    sol: float | None
    """Speed-of-light score, 0 to 1; None where the baseline is at the floor already."""
    is_like: bool
    """Whether every baseline does the same work on the same data."""


def task_speed(result: SuiteTaskResult, over: Over) -> TaskSpeed | None:
    """Return the speed of a valid task; None where a workload was not timed over this baseline."""
    if not result.is_valid or not result.times:
        return None
    found = [workload_speed(one, over) for one in result.times]
    speeds = [one for one in found if one is not None]
    if len(speeds) < len(found):
        return None
    sol = [one.sol for one in speeds if one.sol is not None]
    proven = [one.proven for one in speeds if one.proven is not None]
    return TaskSpeed(
        speedup=geometric_mean([one.speedup for one in speeds]),
        proven=geometric_mean(proven) if len(proven) == len(speeds) else None,
        sol=fmean(sol) if len(sol) == len(speeds) else None,
        is_like=all(one.is_like for one in speeds),
    )


def workload_speed(timed: TimedWorkload, over: Over) -> TaskSpeed | None:
    """Return the speed at one workload; over several such baselines the fastest of them counts."""
    fitting = [one for one in timed.comparisons if _is_meant(one, over)]
    speeds = [one for one in (_speed(timed, each) for each in fitting) if one is not None]
    return min(speeds, key=lambda one: one.speedup, default=None)


def _is_meant(comparison: Comparison, over: Over) -> bool:
    name = comparison.baseline.name
    return name != BASELINES["reference"] if over == "best" else name == BASELINES[over]


def _speed(timed: TimedWorkload, comparison: Comparison) -> TaskSpeed | None:
    if comparison.speedup is None or comparison.interval is None:
        return None
    latency, baseline = timed.latency, comparison.baseline_latency
    sol = None
    if latency is not None and baseline is not None:
        sol = sol_score(latency.median_us, baseline.median_us, timed.floor_us)
    low = comparison.interval[0]
    return TaskSpeed(comparison.speedup, low, sol, comparison.like_for_like.holds)


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive values, at least one."""
    if len(values) == 1:
        return values[0]  # exactly: it may be compared with a threshold
    return exp(fmean(map(log, values)))
