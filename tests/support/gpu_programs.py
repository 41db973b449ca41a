"""Programs that are compiled, planned and timed on a real GPU."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.case import Case
from kopt.kernels.oracle import load_oracle
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import find_kernel
from kopt.kernels.status import Status
from kopt.tools.check.request import CheckRequest, cubin_paths, make_plans
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.devices.device import Arrays, Program
from kopt.tools.devices.timer import CandidateSide, Side, TimingRequest
from kopt.tools.gpu.device import CudaDevice

POISON = 0xA5
TINY_HEAD = """\
/* kopt: 1
family: other
launch:
  - {kernel: scale_rows, grid: B, block: 64, args: [x, out, H, scale]}
*/
extern "C" __global__ void scale_rows(const float* x, float* out, int H, float scale) {
  const size_t at = size_t(blockIdx.x) * H + threadIdx.x;
"""


@dataclass(frozen=True)
class TimedProgram:
    """One program of one problem, with inputs."""

    program: Program
    inputs: Arrays

    @property
    def side(self) -> CandidateSide:
        """What is timed."""
        return CandidateSide(plan=self.program.plan, cubin_path=str(self.program.cubin_path))

    def request(self, sides: Sequence[Side], seed: int = 1) -> TimingRequest:
        """Return a request to time `sides`."""
        problem = self.program.problem
        return TimingRequest(
            problem=problem,
            workload=problem.workload(self.program.plan.workload),
            sides=tuple(sides),
            inputs=self.inputs,
            poison=POISON,
            layout_seed=seed,
        )


@dataclass(frozen=True)
class Gpu:
    """A device of a real GPU."""

    device: CudaDevice
    settings: Settings
    tiny: Problem

    def case(self, kernel: str) -> TimedProgram:
        """Return the reference kernel of `kernel`."""
        problem, workload = find_kernel(kernel)
        candidate = read_candidate(problem.folder / "reference.cu")
        return self._case(problem, workload.name, candidate)

    def tiny_case(self, body: str) -> TimedProgram:
        """Return a kernel of scale_rows."""
        return self._case(self.tiny, "b8xh64", Candidate(f"{TINY_HEAD}{body}\n}}\n"))

    def _case(self, problem: Problem, name: str, candidate: Candidate) -> TimedProgram:
        workload, arch = problem.workload(name), self.device.facts.arch
        request = CheckRequest(Case(problem, workload, candidate), "quick", arch=arch)
        compiled = compile_candidate(
            CompileRequest(case=Case(problem, workload, candidate), archs=(arch,)),
            self.settings,
        )
        assert compiled.status is Status.PASSED, compiled.diagnostics
        plans = make_plans(request, self.device.gpu).final(
            compiled, self.device.gpu, simulated=False
        )
        plan = plans[name]
        program = Program(candidate, problem, plan, Path(cubin_paths(compiled)[name]))
        inputs = load_oracle(problem).make_inputs(workload, np.random.default_rng(1), "normal")
        return TimedProgram(program, inputs)
