"""A compiled candidate together with the plan by which one workload is launched on one GPU."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import GpuSpec
from kopt.config.settings import Settings
from kopt.kernels.case import Case
from kopt.kernels.compile_result import Build, CompileResult
from kopt.kernels.input_regimes import REGIMES
from kopt.kernels.oracle import load_oracle
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.plan_resolver import resolve_plan
from kopt.tools.cuda.compile_job import CompileContext
from kopt.tools.cuda.compile_stage import COMPILE_LIMIT_S
from kopt.tools.cuda.nvcc import cubin_with_lines
from kopt.tools.cuda.planned_build import PlannedBuild, final_plan
from kopt.tools.cuda.toolchain import find_toolchain
from kopt.tools.devices.device import Arrays
from kopt.tools.estimate.stage import find_build

_SEED = 1


def timing_inputs(case: Case) -> Arrays:
    """Return normal inputs of a fixed seed: for counting and timing, not for judging."""
    rng = np.random.default_rng([_SEED, 0])
    return load_oracle(case.problem).make_inputs(case.workload, rng, REGIMES[0])


@dataclass(frozen=True)
class Launchable:
    """What is launched."""

    case: Case
    gpu: GpuSpec
    plan: LaunchPlan
    """Final: co-resident blocks and axis widths are those of the cubin."""
    build: Build

    @property
    def defines(self) -> str:
        """The defines of the cubin as one word for file names: `BLOCK=256,ROWS=2`."""
        return ",".join(f"{name}={value}" for name, value in sorted(self.plan.defines.items()))

    @cached_property
    def cubin(self) -> bytes:
        """The shipped cubin."""
        return Path(self.build.cubin_path).read_bytes()

    def lined_cubin(self, settings: Settings) -> bytes | None:
        """Return a cubin of the same instructions with a line table; None if there is none.

        Raises:
            SetupError: No compiler, no sandbox, or KOPT_HOME cannot be written.
            InfraError: The sandbox was killed from outside.
        """
        planned = PlannedBuild(self.build.arch, self.gpu, (self.plan,))
        job = planned.job(self.case)
        context = CompileContext("nvcc", find_toolchain(settings), settings, COMPILE_LIMIT_S)
        return cubin_with_lines(job, self.cubin, context)


def make_launchable(case: Case, compiled: CompileResult, gpu: GpuSpec) -> Launchable:
    """Return how `case`, which compiled to `compiled`, is launched on `gpu`.

    Raises:
        ToolError: It has no plan or no cubin for `gpu`.
    """
    plan = resolve_plan(case, gpu).plan
    if plan is None:
        raise ToolError(f"{case.candidate.name} compiled, but has no plan for {gpu.name}")
    build = find_build(compiled, plan, gpu)
    return Launchable(case, gpu, final_plan(plan, build.kernels, case, gpu), build)
