"""What is compiled: requests for the tiny problem, and sources alone."""

from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.tools.cuda.compile_job import CompileJob
from kopt.tools.cuda.compile_stage import CompileRequest


def request_for(problem: Problem, source: str, *archs: str, **tune: int) -> CompileRequest:
    """Return the compile of `source` for the workload b8xh64, by default on sm_100a."""
    return CompileRequest(
        case=Case(problem, problem.workload("b8xh64"), Candidate(source), tune),
        archs=archs or ("sm_100a",),
    )


def job(source: str, arch: str = "sm_90a", **defines: int) -> CompileJob:
    """Return the compile of `source` with these defines, without a problem."""
    return CompileJob(source=source, plan_assertions="", arch=arch, defines=defines)
