"""The unproven kernels that come with the problems."""

from dataclasses import dataclass
from pathlib import Path

from kopt.kernels.candidate import Candidate, read_candidate
from kopt.kernels.problem import Problem, Workload
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.shipped_kernels import shipped_kernels


@dataclass(frozen=True)
class Subject:
    """One unproven kernel at its workload."""

    problem: Problem
    workload: Workload
    source: Path
    arch: str
    """What it is written for."""

    @property
    def kernel(self) -> str:
        """Its kernel id."""
        return self.problem.kernel_id(self.workload)

    def candidate(self) -> Candidate:
        """Read its source."""
        return read_candidate(self.source)


def subjects() -> list[Subject]:
    """Return every unproven kernel, in the order of `kopt list`."""
    return [
        Subject(problem, workload, shipped.source, shipped.arch)
        for problem in load_problems().values()
        for workload in problem.workloads
        for shipped in shipped_kernels(problem, workload)
        if shipped.standing == "unproven"
    ]
