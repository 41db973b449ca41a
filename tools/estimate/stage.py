"""The estimated time of a candidate: an order for the search where nothing can be measured.

It joins static facts of the cubin, counted accesses of the simulator and the GPU's data sheet. The
result is always labelled `estimated` and never stands beside a measured time: docs/estimate.md.
"""

from math import prod

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import GpuSpec
from kopt.kernels.compile_result import Build, CompileResult, KernelResources
from kopt.kernels.counters import ExecutionCounters
from kopt.kernels.plan import Launch, LaunchPlan
from kopt.kernels.roofline import ByteModel
from kopt.kernels.time_estimate import LaunchEstimate, PartName, TimeEstimate
from kopt.tools.cuda.occupancy import launch_occupancy

from .instructions import StaticMix
from .launch import LaunchModel, estimate_launch
from .machine.machine_time import TimedLaunch
from .machine.stage import FollowedPlan
from .traffic import Demand, Traffic, traffic_of

_CUT = (
    "the end of a warp's way, which is longer than is followed, or goes where no code is known: it"
    " takes at least this time"
)
RESOLUTION = 0.02
"""Estimates from machine code that are nearer than this are not told apart: docs/estimate.md."""


def estimate_time(
    compiled: CompileResult,
    counters: ExecutionCounters | None,
    plan: LaunchPlan,
    gpu: GpuSpec,
    model: ByteModel,
) -> TimeEstimate:
    """Return an estimate of one call of `plan` on `gpu` with a cold L2, from counts.

    Args:
        compiled: A passed result that has a build for the architecture of `gpu` and this plan.
        counters: One execution of the whole plan. Without them every byte of `model` is taken to
            move once, coalesced.
        plan: The launches; `plan.workload` picks the build.
        gpu: The data sheet.
        model: The workload's least traffic, which tells re-reads from first reads.

    Raises:
        ToolError: `compiled` has no cubin for this plan and architecture.
    """
    kernels = {kernel.name: kernel for kernel in find_build(compiled, plan, gpu).kernels}
    mixes = [StaticMix(kernel) for kernel in kernels.values()]
    resident_fraction, warps_per_sm = _residence(plan, kernels, gpu)
    demand = Demand(
        plan=plan,
        counters=counters,
        model=model,
        load_width_bytes=_mean([mix.load_bytes for mix in mixes if mix.loads]),
        store_width_bytes=_mean([mix.store_bytes for mix in mixes if mix.stores]),
        warps_per_sm=warps_per_sm,
    )
    traffic = traffic_of(demand, resident_fraction, gpu)
    launches = tuple(
        estimate_launch(part) for part in _launch_models(plan, kernels, gpu, (traffic, counters))
    )
    return TimeEstimate(
        workload=plan.workload,
        gpu=gpu.name,
        latency_us=sum(launch.latency_us for launch in launches),
        launches=launches,
        dominant=_dominant(launches),
        missing=_missing(tuple(kernels.values()), counters),
    )


def with_machine_time(estimate: TimeEstimate, followed: FollowedPlan | None) -> TimeEstimate:
    """Return an estimate with the time of its machine code in the place of that of its parts.

    Args:
        estimate: From counts.
        followed: The same plan, followed through its machine code; None where it could not be.
    """
    if followed is None:
        missing = (*estimate.missing, "the way through the machine code: the time is from counts")
        return estimate.model_copy(update={"missing": missing})
    told = zip(estimate.launches, followed.launches, followed.times_us(), strict=True)
    launches = _not_below_dram(tuple(_timed(*one) for one in told))
    return estimate.model_copy(
        update={
            "latency_us": sum(one.latency_us for one in launches),
            "launches": launches,
            "method": "machine_code",
            "resolution": RESOLUTION,
            "missing": estimate.missing if followed.is_whole else (*estimate.missing, _CUT),
        }
    )


def _timed(counted: LaunchEstimate, followed: TimedLaunch, time_us: float) -> LaunchEstimate:
    """Return a launch with the time of its machine code: of a way that was cut a lower bound."""
    if followed.path.is_cut:
        time_us = max(time_us, counted.latency_us)
    return counted.model_copy(update={"latency_us": time_us, "counts_us": counted.latency_us})


def _not_below_dram(launches: tuple[LaunchEstimate, ...]) -> tuple[LaunchEstimate, ...]:
    """Return launches that together take the time that DRAM needs for the bytes that were counted.

    What is read or written behind a branch on data, or by bulk copies, no followed warp asks for.
    """
    moved = sum(part.time_us for one in launches for part in one.parts if part.name == "dram")
    factor = max(1.0, moved / sum(one.latency_us for one in launches))
    return tuple(one.model_copy(update={"latency_us": one.latency_us * factor}) for one in launches)


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


def _launch_models(
    plan: LaunchPlan,
    kernels: dict[str, KernelResources],
    gpu: GpuSpec,
    counted: tuple[Traffic, ExecutionCounters | None],
) -> list[LaunchModel]:
    """Split the plan's traffic over its launches by their threads: counters are not per launch."""
    traffic, counters = counted
    threads = [_threads(launch) for launch in plan.launches]
    shared_bytes = counters.shared_load_bytes + counters.shared_store_bytes if counters else 0
    memsets = sum(buffer.init == "zero" for buffer in plan.scratch)
    models: list[LaunchModel] = []
    for index, launch in enumerate(plan.launches):
        share = threads[index] / sum(threads)
        kernel = kernels[launch.kernel]
        models.append(
            LaunchModel(
                launch=launch,
                kernel=kernel,
                occupancy=launch_occupancy(launch, kernel, gpu),
                gpu=gpu,
                traffic=traffic.scaled(share),
                counters=counters,
                shared_bytes=shared_bytes * share,
                memsets=memsets if index == 0 else 0,
            )
        )
    return models


def _threads(launch: Launch) -> int:
    return prod(launch.grid) * prod(launch.block)


def _residence(
    plan: LaunchPlan, kernels: dict[str, KernelResources], gpu: GpuSpec
) -> tuple[float, int]:
    """Return the share of the blocks, and the warps on an SM, that run at the same time.

    1 and 0 with several launches, of which counters tell none.
    """
    if len(plan.launches) != 1:
        return 1.0, 0
    launch = plan.launches[0]
    occupancy = launch_occupancy(launch, kernels[launch.kernel], gpu)
    blocks = min(occupancy.blocks_per_sm, -(-prod(launch.grid) // gpu.sm_count))
    return 1 / max(occupancy.waves, 1.0), blocks * -(-prod(launch.block) // 32)


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _dominant(launches: tuple[LaunchEstimate, ...]) -> PartName:
    totals: dict[PartName, float] = {}
    for launch in launches:
        for part in launch.parts:
            totals[part.name] = totals.get(part.name, 0.0) + part.time_us
    return max(totals, key=lambda name: totals[name])


def _missing(
    kernels: tuple[KernelResources, ...], counters: ExecutionCounters | None
) -> tuple[str, ...]:
    missing: list[str] = []
    if any(kernel.instructions is None for kernel in kernels):
        missing.append("instruction mix (nvdisasm): issue time 0, accesses of 4 bytes")
    if counters is None:
        missing.append("counted accesses: each byte once, coalesced; barriers as in the code")
    elif any(buffer.sectors_per_request is None for buffer in counters.traffic.values()):
        missing.append("sectors of some buffers: taken as coalesced")
    return tuple(missing)
