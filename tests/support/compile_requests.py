"""Compile requests for the tiny problem."""

from kopt.kernels.candidate import Candidate
from kopt.kernels.problem import Problem
from kopt.tools.compile_stage import CompileRequest


def request_for(problem: Problem, source: str, *archs: str, **tune: int) -> CompileRequest:
    """Return the compile of `source` for the workload b8xh64, by default on sm_100a."""
    return CompileRequest(
        problem=problem,
        workload=problem.workload("b8xh64"),
        candidate=Candidate(source),
        archs=archs or ("sm_100a",),
        tune=tune or None,
    )
