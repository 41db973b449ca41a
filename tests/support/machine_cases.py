"""Instructions, steps and followed kernels for tests of the time model over machine code."""

from collections.abc import Mapping
from dataclasses import dataclass

from kopt.config.gpu_specs import GpuSpec, gpu_for_arch
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.compile_result import Build
from kopt.kernels.counters import ExecutionCounters
from kopt.kernels.plan import LaunchPlan
from kopt.kernels.plan_resolver import resolve_plan
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.roofline import ByteModel, workload_bytes
from kopt.kernels.time_estimate import TimeEstimate
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.estimate.machine.instructions import NO_SCOREBOARD, Instruction
from kopt.tools.estimate.machine.lanes import ALL, Flags, Lanes, Words
from kopt.tools.estimate.machine.moves import effect_of
from kopt.tools.estimate.machine.stage import FollowedPlan, follow_plan
from kopt.tools.estimate.stage import estimate_followed

KERNEL = "silu_and_mul_b8xh14336"
ARCH = "sm_90a"

HEAD = """/* kopt: 1
family: other
where: B == 8
launch:
  - {kernel: k, grid: B, block: 256, args: [input, out, H]}
*/
#include <cuda_bf16.h>
"""


def instruction(text: str, **fields: object) -> Instruction:
    """Return an instruction from text as nvdisasm prints it: `@!P0 IADD3 R1,R2,R3,RZ`."""
    guard, _, rest = text.rpartition("@")[2].partition(" ") if "@" in text else ("", "", text)
    name, _, operands = rest.strip().partition(" ")
    operation, *modifiers = name.split(".")
    known: dict[str, object] = {
        "address": 0,
        "guard": guard,
        "operation": operation,
        "modifiers": frozenset(modifiers),
        "operands": tuple(part.strip() for part in operands.split(",") if part.strip()),
        "stall": 1,
        "sets": NO_SCOREBOARD,
        "frees": NO_SCOREBOARD,
        "waits": 0,
    }
    return Instruction(**(known | fields))  # type: ignore[arg-type]  # a table of fields


def carried_out(text: str, registers: Mapping[str, Words], active: Flags = ALL) -> Lanes:
    """Return the lanes after one instruction, which had these registers before it."""
    one = instruction(text)
    lanes = Lanes({})
    for name, words in registers.items():
        lanes.write(name, words, ALL)
    effect_of(one)(lanes, one, active)
    return lanes


@dataclass(frozen=True)
class FollowedKernel:
    """A kernel with its plan, followed."""

    case: Case
    build: Build
    plan: LaunchPlan
    gpu: GpuSpec
    model: ByteModel
    way: FollowedPlan

    def estimate(self, counters: ExecutionCounters | None = None) -> TimeEstimate:
        """Return its estimated time."""
        return estimate_followed(self.way, self.plan, self.gpu, (self.model, counters))


def followed(body: str, settings: Settings, arch: str = ARCH) -> FollowedPlan:
    """Return the kernel `k` with this body, followed: input and out of 8 rows of bfloat16."""
    return followed_kernel(body, settings, arch).way


def followed_kernel(
    body: str, settings: Settings, arch: str = ARCH, head: str = HEAD
) -> FollowedKernel:
    """Return the same with its plan; `head` launches `k` with input, out and H."""
    source = (
        f'{head}extern "C" __global__ void k(const __nv_bfloat16* __restrict__ input,'
        f" __nv_bfloat16* __restrict__ out, int H) {{\n{body}\n}}\n"
    )
    problem, workload = find_kernel(KERNEL)
    case = Case(problem, workload, Candidate(source))
    compiled = compile_candidate(CompileRequest(case, (arch,), "nvrtc"), settings)
    assert compiled.builds, compiled.diagnostics
    gpu = gpu_for_arch(arch)
    plan = resolve_plan(case, gpu).plan
    assert plan is not None
    model = workload_bytes(problem, workload)
    build = compiled.builds[0]
    way = follow_plan(build, plan, gpu, model, settings)
    return FollowedKernel(case, build, plan, gpu, model, way)
