"""The profile stage: what limits a candidate, from everything that this machine can say.

It compiles the candidate, executes it once on the simulator to count its accesses, and joins static
facts, floors and the estimate. On a GPU it also times it and reads the hardware's counters. It
checks no values: `check_candidate` does.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from kopt.config.callbacks import ignore
from kopt.config.errors import SetupError
from kopt.config.gpu_specs import GpuSpec, gpu_for_arch
from kopt.config.settings import DEFAULT_ARCH, Settings
from kopt.kernels.case import Case
from kopt.kernels.compile_result import KernelResources
from kopt.kernels.counters import ExecutionCounters, HardwareCounters
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.profile_result import (
    BufferRole,
    LaunchProfile,
    MeasuredTime,
    ProfileResult,
    TensorTraffic,
)
from kopt.kernels.record import Diagnostic
from kopt.kernels.roofline import ByteModel, roofline, workload_bytes
from kopt.kernels.status import Status
from kopt.kernels.time_estimate import TimeEstimate
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.cuda.lined_listing import Listing, lined_instructions
from kopt.tools.cuda.occupancy import launch_occupancy
from kopt.tools.cuda.toolchain import find_toolchain
from kopt.tools.devices.device import Device, ExecutionOutcome, ExecutionRequest, Program
from kopt.tools.devices.timer import TimingDevice
from kopt.tools.estimate.counted_floor import nearest_way
from kopt.tools.estimate.machine.stage import FollowedPlan, follow_plan
from kopt.tools.estimate.stage import estimate_followed

from .bottleneck import ProfileFacts, find_bottleneck
from .launchable import Launchable, make_launchable, timing_inputs
from .machine_excerpt import machine_excerpt, refuse_unclear
from .measure import measure_time
from .suspect_evidence import SuspectEvidence
from .suspects import find_suspects

_POISON = 0xFF
_TIMEOUT_S = 120.0
_COUNTED = ("load_bytes", "store_bytes", "sectors_per_request", "ideal_sectors_per_request")


@dataclass(frozen=True)
class ProfileRequest:
    """What to profile."""

    case: Case
    arch: str = DEFAULT_ARCH
    """Its data sheet gives the floors and the estimate where no GPU measures."""
    counters: bool = True
    """Whether the GPU's own counters are read too, where there is a GPU: seconds."""
    suspects: bool = True
    """Whether suspects are looked for, with their lines: two or three seconds."""
    sass: str = ""
    """The part of the machine code to show: `hot`, or the number of a line; "" for none."""
    progress: Callable[[str], None] = ignore
    """Called with a short line before each step."""


@dataclass(frozen=True)
class ProfileDevices:
    """What executes the candidate; neither is needed for static facts and an estimate."""

    counting: Device | None = None
    """Counts accesses: the simulator."""
    timing: TimingDevice | None = None
    """Times it; its own limits and peaks replace the data sheet's."""

    @property
    def gpu(self) -> GpuSpec | None:
        """The GPU that times, or that the simulator stands for; None: that of the architecture."""
        device = self.timing or self.counting
        return None if device is None else device.gpu


def profile_candidate(
    request: ProfileRequest, settings: Settings, devices: ProfileDevices | None = None
) -> ProfileResult:
    """Return the profile of a candidate.

    A candidate that does not compile has only the byte model and the roofline. What a device does
    not support or cannot tell is missing, which the result says, and the rest is complete.

    Raises:
        ToolError: The architecture is unknown, or the candidate has no plan for it.
        SetupError: No compiler, no sandbox, or a folder that cannot be written.
        InfraError: The machine failed under the work; it may be tried again.
    """
    if request.sass:
        refuse_unclear(request.sass)
    devices = devices or ProfileDevices()
    gpu = devices.gpu or gpu_for_arch(request.arch)
    request.progress(f"compiling for {request.arch}")
    compiled = compile_candidate(
        CompileRequest(case=request.case, archs=(request.arch,)),
        settings,
    )
    model = workload_bytes(request.case.problem, request.case.workload)
    base = ProfileResult(
        status=compiled.status,
        kernel=compiled.kernel,
        candidate=compiled.candidate,
        chosen_tune=compiled.chosen_tune,
        arch=request.arch,
        gpu=gpu.name,
        byte_model=model,
        roofline=roofline(model, gpu),
        diagnostics=compiled.diagnostics,
    )
    if compiled.status is not Status.PASSED:
        return base
    launchable = make_launchable(request.case, compiled, gpu)
    counted, uncounted = _count(launchable, request, devices)
    on_gpu = _on_gpu(launchable, request, devices.timing, settings)
    counters = counted.counters if counted and counted.status is Status.PASSED else None
    followed = follow_plan(launchable.build, launchable.plan, gpu, model, settings)
    followed = nearest_way(followed, counters)
    estimate = estimate_followed(followed, launchable.plan, gpu, (model, counters))
    profiled = base.model_copy(update=_facts(launchable, counters, on_gpu, estimate))
    if request.suspects or request.sass:
        request.progress("reading the machine code")
        lined = launchable.lined_cubin(settings) or launchable.cubin
        listing = lined_instructions(lined, find_toolchain(settings), settings)
        profiled = _with_code(profiled, request, (launchable, followed), listing)
    if uncounted is not None:
        diagnostics = (*profiled.diagnostics, uncounted)
        profiled = profiled.model_copy(update={"diagnostics": diagnostics})
    return _with_endings(profiled, devices, counted, on_gpu)


def _with_code(
    profiled: ProfileResult,
    request: ProfileRequest,
    known: tuple[Launchable, FollowedPlan],
    listing: Listing,
) -> ProfileResult:
    """Return the profile with what only the machine code and its lines tell."""
    launchable, followed = known
    update: dict[str, object] = {}
    if request.suspects and profiled.estimate is not None:
        evidence = SuspectEvidence(profiled, profiled.estimate, launchable.gpu.sm_count)
        update["suspects"] = find_suspects(evidence, followed, listing)
    if request.sass:
        update["machine_code"] = machine_excerpt(launchable, request.sass, followed, listing)
    return profiled.model_copy(update=update)


def _count(
    launchable: Launchable, request: ProfileRequest, devices: ProfileDevices
) -> tuple[ExecutionOutcome | None, Diagnostic | None]:
    """Count accesses; where something is measured, a machine that cannot count is only noted."""
    if devices.counting is None:
        return None, None
    request.progress(f"counting accesses on {devices.counting.name}")
    try:
        return _execute(launchable, devices.counting), None
    except SetupError as error:
        if devices.timing is None:
            raise
        message = f"accesses are not counted, the simulator does not work here: {error}"
        return None, Diagnostic(severity="note", message=message[:500])


@dataclass(frozen=True)
class _OnGpu:
    """What a GPU said; nothing without one."""

    measured: MeasuredTime | None = None
    ended: ExecutionOutcome | None = None
    """How the candidate ended where it could not be timed."""
    hardware: HardwareCounters | None = None


def _on_gpu(
    launchable: Launchable,
    request: ProfileRequest,
    device: TimingDevice | None,
    settings: Settings,
) -> _OnGpu:
    if device is None:
        return _OnGpu()
    request.progress(f"timing on {device.name}")
    model = workload_bytes(request.case.problem, request.case.workload)
    measured = measure_time(launchable, model, device)
    if isinstance(measured, ExecutionOutcome):
        return _OnGpu(ended=measured)
    if not request.counters:
        return _OnGpu(measured)
    # Only here: the simulator's path imports nothing of a GPU.
    from .counters import read_counters

    request.progress(f"reading the counters of {device.name}")
    return _OnGpu(measured, hardware=read_counters(launchable, device, settings))


def _with_endings(
    profile: ProfileResult,
    devices: ProfileDevices,
    counted: ExecutionOutcome | None,
    on_gpu: _OnGpu,
) -> ProfileResult:
    """Add how the executions ended: that of the GPU, which runs what ships, decides."""
    status, diagnostics = profile.status, profile.diagnostics
    update: dict[str, object] = {}
    if counted is not None and devices.counting is not None:
        update = {"device": devices.counting.name, "sandbox": counted.sandbox}
        diagnostics = (*diagnostics, *counted.diagnostics)
        if devices.timing is None and counted.status is not Status.UNSUPPORTED_ON_SIM:
            status = counted.status
    if on_gpu.ended is not None:
        status = on_gpu.ended.status
        diagnostics = (*diagnostics, *on_gpu.ended.diagnostics)
    return profile.model_copy(update={**update, "status": status, "diagnostics": diagnostics})


def _execute(launchable: Launchable, device: Device) -> ExecutionOutcome:
    case = launchable.case
    program = Program(case.candidate, case.problem, launchable.plan)
    return device.execute(
        ExecutionRequest(
            program=program, inputs=timing_inputs(case), poison=_POISON, timeout_s=_TIMEOUT_S
        )
    )


def _facts(
    launchable: Launchable,
    counters: ExecutionCounters | None,
    on_gpu: _OnGpu,
    estimate: TimeEstimate,
) -> dict[str, object]:
    """The fields that follow from a compiled candidate, its counters and its times."""
    plan, gpu = launchable.plan, launchable.gpu
    model = workload_bytes(launchable.case.problem, launchable.case.workload)
    kernels = {kernel.name: kernel for kernel in launchable.build.kernels}
    launches = _launches(plan, kernels, gpu)
    hardware = on_gpu.hardware.launches if on_gpu.hardware else ()
    facts = ProfileFacts(model, launches, estimate, on_gpu.measured, hardware)
    return {
        "launches": launches,
        "counters": counters,
        "traffic": _traffic(model, plan, counters),
        "estimate": estimate,
        "floor_fraction": min(1.0, roofline(model, gpu).floor_us / estimate.latency_us),
        "measured": on_gpu.measured,
        "hardware": on_gpu.hardware,
        "bottleneck": find_bottleneck(facts),
    }


def _launches(
    plan: LaunchPlan, kernels: Mapping[str, KernelResources], gpu: GpuSpec
) -> tuple[LaunchProfile, ...]:
    return tuple(
        LaunchProfile(
            kernel=launch.kernel,
            grid=launch.grid,
            block=launch.block,
            dynamic_smem_bytes=launch.dynamic_smem_bytes,
            resources=kernels[launch.kernel],
            occupancy=launch_occupancy(launch, kernels[launch.kernel], gpu),
        )
        for launch in plan.launches
    )


def _traffic(
    model: ByteModel, plan: LaunchPlan, counters: ExecutionCounters | None
) -> tuple[TensorTraffic, ...]:
    buffers: dict[str, tuple[BufferRole, int, int]] = {
        one.name: (one.role, one.read_bytes, one.written_bytes) for one in model.tensors
    }
    buffers |= {one.name: ("scratch", 0, 0) for one in plan.scratch}
    counted = counters.traffic if counters else {}
    return tuple(
        TensorTraffic(
            name=name,
            role=role,
            needed_read_bytes=read_bytes,
            needed_written_bytes=written_bytes,
            **{field: getattr(counted.get(name), field, None) for field in _COUNTED},
        )
        for name, (role, read_bytes, written_bytes) in buffers.items()
    )
