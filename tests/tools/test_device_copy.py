"""The copy kernel itself: right for any bytes on the simulator, and built for old GPUs as well."""

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.status import Status
from kopt.tools.bench.plain_copy import FOLDER, SHAPES, without_dependent_launch
from kopt.tools.check.request import CheckRequest
from kopt.tools.check.stage import check_candidate
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from kopt.tools.sim.device import SimDevice


@pytest.mark.slow  # a program for each
@pytest.mark.parametrize("workload", ["r8192xw8192", "r8192xw4096", "r3000xw4100"])
def test_the_copy_is_right_whether_it_reads_or_writes_more(
    workload: str, settings: Settings
) -> None:
    problem = load_problem(FOLDER)
    candidate = read_candidate(FOLDER / "reference.cu")
    case = Case(problem, problem.workload(workload), candidate, {"BLOCK": 256, "VECTORS": 4})
    result = check_candidate(
        CheckRequest(case, "quick", arch="sm_90a"), SimDevice(settings), settings
    )
    assert result.status is Status.PASSED, result.diagnostics


@pytest.mark.slow  # nvcc for each
@pytest.mark.parametrize(("arch", "is_dependent"), [("sm_80", False), ("sm_90a", True)])
def test_the_copy_compiles_for_gpus_with_and_without_dependent_launch(
    arch: str, is_dependent: bool, settings: Settings
) -> None:
    problem = load_problem(FOLDER)
    candidate = read_candidate(FOLDER / "reference.cu")
    asked = candidate if is_dependent else without_dependent_launch(candidate)
    block, vectors = SHAPES[0]
    case = Case(problem, problem.workloads[1], asked, {"BLOCK": block, "VECTORS": vectors})
    result = compile_candidate(CompileRequest(case, (arch,)), settings)
    assert result.status is Status.PASSED, result.diagnostics
