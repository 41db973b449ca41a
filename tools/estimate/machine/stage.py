"""The machine code of a build followed for one plan, and the time that comes of it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from kopt.config.errors import InfraError, SetupError
from kopt.config.gpu_specs import GpuSpec
from kopt.config.settings import Settings
from kopt.kernels.compile_result import Build
from kopt.kernels.plan import Launch, LaunchPlan
from kopt.kernels.roofline import ByteModel
from kopt.tools.cuda.cubin import CubinKernel, read_cubin
from kopt.tools.cuda.nvdisasm import run_nvdisasm
from kopt.tools.cuda.occupancy import launch_occupancy
from kopt.tools.cuda.toolchain import find_toolchain

from .instructions import Instruction, read_instructions
from .launch_path import MAX_FOLLOWED, Following, constant_bank, follow_launch
from .machine_time import LaunchTime, TimedLaunch
from .sm_work import MAX_STEPS
from .timing_constants import Clocks

_FOLLOWED_WHOLE = 4
"""Launches that differ, up to which each may take all the time that a launch may; more share it."""

_NO_NVDISASM = (
    "an estimate needs nvdisasm, which is not installed beside the CUDA compiler; next:"
    " pip install 'kopt-mcp[toolkit]', or install the whole CUDA toolkit"
)


@dataclass(frozen=True)
class FollowedPlan:
    """The launches of a plan, followed through their machine code."""

    launches: tuple[TimedLaunch, ...]

    def taking_branches(self) -> "FollowedPlan":
        """Return the same launches followed along the branches on data that were passed by."""
        unlike = {id(one): one for one in self.launches}
        few = -(-len(unlike) // _FOLLOWED_WHOLE)
        other: dict[int, TimedLaunch] = {}
        for key, one in unlike.items():
            path = one.path
            how = Following(MAX_FOLLOWED // few, takes_branches=True)
            other[key] = replace(
                one, path=follow_launch(path.launch, path.code, path.bank, one.gpu.sm_count, how)
            )
        return FollowedPlan(tuple(other[id(one)] for one in self.launches))

    def times(self, clocks: Clocks | None = None) -> tuple[LaunchTime, ...]:
        """Return the time of each launch, on buffers that no cache holds."""
        known = clocks or Clocks()
        unlike = {id(one): one for one in self.launches}
        times = {key: one.time(known) for key, one in unlike.items()}
        return tuple(times[id(one)] for one in self.launches)

    def time_us(self, clocks: Clocks | None = None) -> float:
        """Return the time of all launches, one after the other."""
        return sum(one.us for one in self.times(clocks))


def follow_plan(
    build: Build, plan: LaunchPlan, gpu: GpuSpec, model: ByteModel, settings: Settings
) -> FollowedPlan:
    """Return the launches of `plan` as the machine code of `build` carries them out.

    Raises:
        InfraError: nvdisasm cannot read the cubin, or it has not the kernels of the plan.
        SetupError: There is no compiler or no nvdisasm, or it cannot be run in the sandbox.
    """
    data = Path(build.cubin_path).read_bytes()
    listing = run_nvdisasm(data, find_toolchain(settings), settings)
    if listing is None:
        raise SetupError(_NO_NVDISASM)
    facts = read_cubin(data)
    code = read_instructions(listing, facts.code)
    kernels = {kernel.name: kernel for kernel in facts.kernels}
    if lost := {launch.kernel for launch in plan.launches} - code.keys() & kernels.keys():
        raise InfraError(f"the cubin has no code of {', '.join(sorted(lost))}")
    known = _Code(code, kernels, facts.tables)
    return FollowedPlan(tuple(_launches(build, plan, gpu, known, _unique(model))))


@dataclass(frozen=True)
class _Code:
    """What a cubin holds, each by kernel."""

    instructions: Mapping[str, tuple[Instruction, ...]]
    kernels: Mapping[str, CubinKernel]
    tables: Mapping[str, bytes]


def _launches(
    build: Build,
    plan: LaunchPlan,
    gpu: GpuSpec,
    known: _Code,
    unique_bytes: Mapping[str, int],
) -> list[TimedLaunch]:
    resources = {kernel.name: kernel for kernel in build.kernels}
    alike = [launch.model_copy(update={"line": None}) for launch in plan.launches]
    found: dict[Launch, TimedLaunch] = {}
    few = -(-len(set(alike)) // _FOLLOWED_WHOLE)
    for launch in dict.fromkeys(alike):
        base = known.kernels[launch.kernel].parameter_base_bytes
        bank = constant_bank(launch, base, known.tables[launch.kernel])
        how = Following(MAX_FOLLOWED // few)
        path = follow_launch(launch, known.instructions[launch.kernel], bank, gpu.sm_count, how)
        occupancy = launch_occupancy(launch, resources[launch.kernel], gpu)
        resident = max(1, occupancy.blocks_per_sm)
        smem = launch.dynamic_smem_bytes + resources[launch.kernel].static_smem_bytes
        steps = MAX_STEPS // few
        found[launch] = TimedLaunch(path, resident, unique_bytes, gpu, smem, steps)
    return [found[launch] for launch in alike]


def _unique(model: ByteModel) -> dict[str, int]:
    return {one.name: max(one.read_bytes, one.written_bytes) for one in model.tensors}
