"""The profile stage: everything that can be said about a candidate's speed without a GPU.

It compiles the candidate, executes it once if a device is given, and joins static facts, counted
bytes, floors and the estimate. It checks no values: `check_candidate` does.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import GpuSpec, gpu_for_arch
from kopt.config.settings import Settings
from kopt.kernels.byte_model import ByteModel, roofline, workload_bytes
from kopt.kernels.candidate import Candidate
from kopt.kernels.compile_result import CompileResult, KernelResources
from kopt.kernels.counters import BufferTraffic, ExecutionCounters
from kopt.kernels.header_parser import parse_header
from kopt.kernels.oracle import REGIMES, load_oracle
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.plan_resolver import PlanTarget, resolve_plan
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.profile_result import BufferRole, LaunchProfile, ProfileResult, TensorTraffic
from kopt.kernels.status import Status

from .compile_stage import CompileRequest, compile_candidate
from .cuda.occupancy import launch_occupancy
from .cuda.planned_build import PlanSource, final_plan
from .device import Device, ExecutionOutcome, ExecutionRequest, Program
from .estimate import find_build
from .profile_suspects import find_suspects
from .profile_what_if import Evaluated

_POISON = 0xFF
_SEED = 1
_TIMEOUT_S = 120.0


@dataclass(frozen=True)
class ProfileRequest:
    """What to profile."""

    problem: Problem
    workload: Workload
    candidate: Candidate
    arch: str
    """Its data sheet gives the floors and the estimate."""
    tune: Mapping[str, int] | None = None
    """Tune values by name; those left out have their default."""


def profile_candidate(
    request: ProfileRequest, settings: Settings, device: Device | None = None
) -> ProfileResult:
    """Return the profile of a candidate; with a `device` it is executed once and counted.

    A candidate that does not compile has only the byte model and the roofline. One that the device
    does not support has no counters, which its diagnostics say, and is otherwise complete.

    Raises:
        ToolError: The architecture is unknown.
        SetupError: No compiler, no sandbox, or a folder that cannot be written.
        InfraError: The machine failed under the work; it may be tried again.
    """
    gpu = gpu_for_arch(request.arch)
    compiled = compile_candidate(
        CompileRequest(
            problem=request.problem,
            workload=request.workload,
            candidate=request.candidate,
            archs=(request.arch,),
            tune=request.tune,
        ),
        settings,
    )
    model = workload_bytes(request.problem, request.workload)
    base = ProfileResult(
        status=compiled.status,
        kernel=compiled.kernel,
        candidate=compiled.candidate,
        arch=request.arch,
        gpu=gpu.name,
        byte_model=model,
        roofline=roofline(model, gpu),
        diagnostics=compiled.diagnostics,
    )
    if compiled.status is not Status.PASSED:
        return base
    plan = _final_plan(request, compiled, gpu)
    outcome = _execute(request, plan, device) if device else None
    counters = outcome.counters if outcome and outcome.status is Status.PASSED else None
    evaluated = Evaluated(compiled, counters, plan, gpu, model)
    profiled = base.model_copy(update=_facts(evaluated))
    if device is None or outcome is None:
        return profiled
    unsupported = outcome.status is Status.UNSUPPORTED_ON_SIM
    return profiled.model_copy(
        update={
            "status": Status.PASSED if unsupported else outcome.status,
            "device": device.name,
            "sandbox": outcome.sandbox,
            "diagnostics": (*compiled.diagnostics, *outcome.diagnostics),
        }
    )


def _final_plan(request: ProfileRequest, compiled: CompileResult, gpu: GpuSpec) -> LaunchPlan:
    """The plan with the occupancy of the compiled kernels where its grid asks for it."""
    header = parse_header(request.candidate, request.problem).header
    source_tune = request.tune or {}
    plan = (
        resolve_plan(header, request.problem, source_tune, PlanTarget(request.workload, gpu)).plan
        if header
        else None
    )
    if header is None or plan is None:
        raise ToolError(f"{request.candidate.name} compiled, but has no plan for {gpu.name}")
    kernels = find_build(compiled, plan, gpu).kernels
    source = PlanSource(header, request.problem, source_tune)
    return final_plan(plan, kernels, source, gpu)


def _execute(request: ProfileRequest, plan: LaunchPlan, device: Device) -> ExecutionOutcome:
    rng = np.random.default_rng([_SEED, 0])
    inputs = load_oracle(request.problem).make_inputs(request.workload, rng, REGIMES[0])
    program = Program(request.candidate, request.problem, plan)
    return device.execute(
        ExecutionRequest(program=program, inputs=inputs, poison=_POISON, timeout_s=_TIMEOUT_S)
    )


def _facts(evaluated: Evaluated) -> dict[str, object]:
    """The fields that follow from a compiled candidate and its counters."""
    plan, gpu = evaluated.plan, evaluated.gpu
    kernels = {kernel.name: kernel for kernel in find_build(evaluated.compiled, plan, gpu).kernels}
    estimate = evaluated.estimate()
    floor_us = roofline(evaluated.model, gpu).floor_us
    return {
        "launches": _launches(plan, kernels, gpu),
        "counters": evaluated.counters,
        "traffic": _traffic(evaluated.model, plan, evaluated.counters),
        "estimate": estimate,
        "floor_fraction": floor_us / estimate.latency_us,
        "suspects": find_suspects(evaluated),
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
    counted = counters.traffic if counters else {}
    tensors = [
        _buffer_traffic(one.name, one.role, (one.read_bytes, one.written_bytes), counted)
        for one in model.tensors
    ]
    scratch = [_buffer_traffic(one.name, "scratch", (0, 0), counted) for one in plan.scratch]
    return (*tensors, *scratch)


def _buffer_traffic(
    name: str, role: BufferRole, needed: tuple[int, int], counted: Mapping[str, BufferTraffic]
) -> TensorTraffic:
    one = counted.get(name)
    return TensorTraffic(
        name=name,
        role=role,
        needed_read_bytes=needed[0],
        needed_written_bytes=needed[1],
        load_bytes=one.load_bytes if one else None,
        store_bytes=one.store_bytes if one else None,
        sectors_per_request=one.sectors_per_request if one else None,
        ideal_sectors_per_request=one.ideal_sectors_per_request if one else None,
    )
