"""Results of a suite's tasks as the stage would give them, for tests of what reads them."""

from collections.abc import Mapping
from pathlib import Path

from kopt.config.settings import Settings
from kopt.kernels.bench_result import BaselinePath, Comparison, LikeForLike
from kopt.kernels.status import Status, Verdict
from kopt.tools.sim.device import SimDevice
from kopt.tools.suite.kernel_choice import KernelChoice
from kopt.tools.suite.score import ScoredTask
from kopt.tools.suite.task_result import (
    CheckedKernel,
    ResultSet,
    SuiteTaskResult,
    TimedWorkload,
)
from kopt.tools.suite.task_stage import SuiteSite
from support.bench_results import H100, comparison, latency

GPU_SET = ResultSet(suite="small", kernels="suite", level="full", device=H100.name, arch="sm_90a")
SIM_SET = ResultSet(suite="small", kernels="suite", level="full", device="sim", arch="sm_90a")


def over(
    name: str, speedup: float, interval: tuple[float, float], baseline_us: float = 20.0
) -> Comparison:
    """Return a measured comparison with a baseline; `reference` is no library."""
    library = None if name == "reference" else "torch 2.13"
    return comparison(
        baseline=BaselinePath(name=name, library=library),
        speedup=speedup,
        interval=interval,
        baseline_latency=latency(baseline_us),
        log_ratios=(),
    )


def unlike(name: str, speedup: float) -> Comparison:
    """Return a comparison with a baseline that allocates."""
    return over(name, speedup, (speedup, speedup)).model_copy(
        update={
            "verdict": Verdict.NOT_LIKE_FOR_LIKE,
            "like_for_like": LikeForLike(holds=False, differences=("it allocates",)),
        }
    )


def timed(
    *comparisons: Comparison, workload: str = "official", time_us: float = 10.0
) -> TimedWorkload:
    """Return what was measured at one workload, 5 us being its floor."""
    return TimedWorkload(
        workload=workload,
        status=Status.PASSED,
        verdict=Verdict.FASTER,
        latency=latency(time_us),
        comparisons=comparisons,
        floor_us=5.0,
    )


def task_result(
    task: str, *times: TimedWorkload, status: Status = Status.PASSED, key: str = "key"
) -> SuiteTaskResult:
    """Return the result of a task whose kernel got `status` from its check."""
    check = CheckedKernel(
        file="reference.cu",
        candidate="0" * 64,
        status=status,
        level="full",
        device="cuda:0",
        elapsed_s=1.0,
    )
    return SuiteTaskResult(
        task=task,
        key=key,
        checks=(check,),
        times=times,
        device="cuda:0",
        gpu=H100,
        arch="sm_90a",
        elapsed_s=2.0,
    )


def scored(speeds: Mapping[str, float | None], group: str = "all") -> list[ScoredTask]:
    """Return valid tasks with these speedups; None is a task that is not valid."""
    return [
        ScoredTask(
            task=name,
            group=group,
            is_valid=speed is not None,
            status=Status.PASSED if speed is not None else Status.INCORRECT,
            speedup=speed,
            speedup_low=None if speed is None else speed * 0.9,
        )
        for name, speed in speeds.items()
    ]


def sim_site(home: Path) -> SuiteSite:
    """Return the simulator as the place where tasks are run; no task may ask for a run."""
    settings = Settings(home=home)
    choice = KernelChoice(None, "sm_90a", settings, lambda problem, chosen: ())
    return SuiteSite(SimDevice(settings), None, "sm_90a", "full", choice, settings)
