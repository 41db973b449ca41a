"""The estimated time of a candidate: an order for the search where nothing can be measured.

It is the time of the machine code, followed warp by warp, held to what the simulator counted. The
result is always labelled `estimated` and never stands beside a measured time: docs/estimate.md.
"""

from collections import Counter

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import GpuSpec
from kopt.config.settings import Settings
from kopt.kernels.compile_result import Build, CompileResult
from kopt.kernels.counters import ExecutionCounters
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.roofline import ByteModel
from kopt.kernels.time_estimate import LaunchEstimate, PartName, PartTimes, TimeEstimate

from .counted_floor import (
    counted_bytes,
    counted_dram_us,
    counted_excess,
    counted_latency_us,
    nearest_way,
)
from .machine.machine_time import LaunchTime
from .machine.stage import FollowedPlan, follow_plan
from .machine.timing_constants import Clocks

RESOLUTION = 0.015
"""Estimates that are nearer than this are not told apart: docs/estimate.md."""
INTERVAL_RATE = 0.9
MEASURED_OVER_ESTIMATED = {"H100": (0.90, 1.19)}
"""Where measured / estimated lies for INTERVAL_RATE of the kept programs, each kernel counting as
much as another (benchmarks/score_estimate.py), by the GPU that the constants were fitted on."""
_ELSEWHERE = (0.80, 1.24)
"""Where it lies for as many programs on a GPU that nothing was fitted to, an H200
(docs/estimate.md)."""
LAUNCH_FRACTION = 0.6
"""Share of the time that empty launches take, from which only they matter (docs/profile.md)."""
BUSY_FRACTION = 0.6
"""Utilisation of a unit from which it is the limit. Source: Nsight Compute's own SpeedOfLight rule:
below 60 % of both compute and memory, latency is the issue."""
_CUT = (
    "the end of a warp's way, which is longer than is followed, or goes where no code is known: it"
    " takes at least this time"
)
_OPEN = "how often a loop runs that ends where data says"
_OTHER = (
    "work on other ways than those followed, behind branches on data: it is scaled by the bytes"
    " that were counted"
)
_UNSEEN = (
    "all accesses that were counted: they are behind branches on data, and it takes longer than"
    " this"
)
_UNCOUNTED = "counted accesses: only the way through the machine code says what is moved"


def estimate_build(
    build: Build,
    plan: LaunchPlan,
    gpu: GpuSpec,
    known: tuple[ByteModel, ExecutionCounters | None],
    settings: Settings,
) -> TimeEstimate:
    """Return the estimate of one call of `plan` on `gpu` with a cold L2.

    Args:
        build: The machine code for the plan.
        plan: The launches.
        gpu: The data sheet.
        known: The bytes that must move, and what one execution of the plan counted; None if nothing
            did.
        settings: Where the compiler is.

    Raises:
        InfraError: nvdisasm cannot read the cubin.
        SetupError: There is no compiler or no nvdisasm, or it cannot be run in the sandbox.
    """
    followed = nearest_way(follow_plan(build, plan, gpu, known[0], settings), known[1])
    return estimate_followed(followed, plan, gpu, known)


def estimate_followed(
    followed: FollowedPlan,
    plan: LaunchPlan,
    gpu: GpuSpec,
    known: tuple[ByteModel, ExecutionCounters | None],
) -> TimeEstimate:
    """Return the estimate of a plan that was followed through its machine code."""
    model, counters = known
    times = followed.times()
    excess = counted_excess(followed, counters)
    floor_us = counted_dram_us(counters, plan, model, gpu)
    timed = zip(plan.launches, times, strict=True)
    first, *others = (_launch(launch.kernel, time, gpu, excess) for launch, time in timed)
    launches = (_with_memsets(first, plan), *others)
    us = sum(one.latency_us for one in launches)
    floor_us = max(floor_us, counted_latency_us(followed, counters, gpu))
    if floor_us > us:
        launches = tuple(_held(one, floor_us / us) for one in launches)
        us = floor_us
    missing = _missing(followed, counters, excess)
    return TimeEstimate(
        workload=plan.workload,
        gpu=gpu.name,
        latency_us=us,
        interval_us=_interval(us, missing, gpu),
        interval_rate=INTERVAL_RATE,
        resolution=RESOLUTION,
        launches=launches,
        dominant=dominant_part(launches),
        missing=missing,
    )


def _interval(us: float, missing: tuple[str, ...], gpu: GpuSpec) -> tuple[float, float | None]:
    least, most = MEASURED_OVER_ESTIMATED.get(gpu.name, _ELSEWHERE)
    is_open = _CUT in missing or _UNSEEN in missing
    return us * least, None if is_open else us * most


def _launch(name: str, time: LaunchTime, gpu: GpuSpec, excess: float) -> LaunchEstimate:
    """Return a launch whose work takes `excess` times as long as that which was followed."""
    work_us = (time.us - time.launch_us) * excess
    parts: PartTimes = {"launch": time.launch_us}
    for unit, clocks in time.timing.busy.items():
        parts[unit] = min(work_us, clocks / gpu.clock_mhz * excess)
    parts["waiting"] = work_us - max(parts[unit] for unit in time.timing.busy)
    return LaunchEstimate(kernel=name, latency_us=time.launch_us + work_us, parts_us=parts)


def _with_memsets(first: LaunchEstimate, plan: LaunchPlan) -> LaunchEstimate:
    """Return the first launch behind those that zero scratch buffers, empty ones in the model."""
    us = Clocks().launch_us * sum(buffer.init == "zero" for buffer in plan.scratch)
    parts = first.parts_us | {"launch": first.parts_us["launch"] + us}
    return first.model_copy(update={"latency_us": first.latency_us + us, "parts_us": parts})


def _held(launch: LaunchEstimate, factor: float) -> LaunchEstimate:
    """Return a launch that takes `factor` times as long, since DRAM needs that."""
    us = launch.latency_us * factor
    parts = launch.parts_us | {"dram": us - launch.parts_us["launch"], "waiting": 0.0}
    return launch.model_copy(update={"latency_us": us, "parts_us": parts})


def dominant_part(launches: tuple[LaunchEstimate, ...]) -> PartName:
    """Return what the launches together mostly are."""
    us = sum(one.latency_us for one in launches)
    totals: Counter[PartName] = Counter()
    for one in launches:
        totals.update(one.parts_us)
    launch_us, _ = totals.pop("launch"), totals.pop("waiting")
    if launch_us >= LAUNCH_FRACTION * us:
        return "launch"
    unit = max(totals, key=lambda name: totals[name])
    return unit if totals[unit] >= BUSY_FRACTION * (us - launch_us) else "waiting"


def _missing(
    followed: FollowedPlan, counters: ExecutionCounters | None, excess: float
) -> tuple[str, ...]:
    paths = [one.path for one in followed.launches]
    said = {
        _CUT: any(path.is_cut for path in paths),
        _OPEN: any(path.has_open_loop for path in paths),
        _OTHER: excess != 1.0,
        _UNSEEN: counters is not None
        and counted_bytes(counters) > 0
        and not any(path.asked_bytes or path.has_bulk_copies for path in paths),
        _UNCOUNTED: counters is None,
    }
    return tuple(words for words, holds in said.items() if holds)


def find_build(compiled: CompileResult, plan: LaunchPlan, gpu: GpuSpec) -> Build:
    """Return the build that serves `plan` on `gpu`.

    Raises:
        ToolError: There is none; the message says what there is.
    """
    wanted = gpu.arch.rstrip("af")
    for build in compiled.builds:
        if build.arch.rstrip("af") == wanted and build.defines == plan.defines:
            return build
    found = ", ".join(f"{build.arch} {build.defines}" for build in compiled.builds) or "none"
    raise ToolError(
        f"no cubin of {compiled.kernel} for {gpu.arch} with {plan.defines}: compiled ({found}), "
        f"status {compiled.status}"
    )
