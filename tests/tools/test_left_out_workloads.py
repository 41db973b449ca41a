"""A choice of tune values that has no plan for a part of the domain can be tried, not win."""

from dataclasses import replace

import pytest

from kopt.config.gpu_specs import gpu_for_arch
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status
from kopt.tools.check.request import CheckRequest, make_plans
from kopt.tools.cuda.compile_stage import compile_candidate
from support.compile_requests import request_for
from support.tiny_problem import BODY, HEADER

FITS_SMALL_ROWS = HEADER.replace("launch:", 'tune_where: ["H <= 64 or BLOCK <= 128"]\nlaunch:')
WIDE_BLOCKS = HEADER.replace("block: BLOCK", "block: BLOCK * H // 64")


@pytest.mark.parametrize(
    ("header", "choice", "why"),
    [
        (FITS_SMALL_ROWS, 256, "tune_where: 'H <= 64 or BLOCK <= 128' does not hold"),
        (WIDE_BLOCKS.replace("128, 256", "128, 512"), 512, "2048"),
    ],
    ids=["a condition", "a limit of the GPU"],
)
def test_workload_that_a_choice_does_not_fit_is_left_out_with_a_remark(
    compile_problem: Problem, settings: Settings, header: str, choice: int, why: str
) -> None:
    request = request_for(compile_problem, header + BODY, BLOCK=choice)
    result = compile_candidate(request, settings)
    assert (result.status, result.left_out) == (Status.PASSED, ("b32xh256",))
    assert [build.workloads for build in result.builds] == [("b8xh64",)]
    (warning,) = [entry for entry in result.diagnostics if entry.severity == "warning"]
    assert warning.message.startswith("b32xh256 is left out: this choice of tune values has no")
    assert why in warning.message


def test_choice_that_fits_everywhere_leaves_nothing_out(
    compile_problem: Problem, settings: Settings
) -> None:
    result = compile_candidate(request_for(compile_problem, FITS_SMALL_ROWS + BODY), settings)
    assert (result.left_out, result.diagnostics) == ((), ())


def test_default_that_does_not_fit_its_domain_is_a_mistake_of_the_header(
    compile_problem: Problem, settings: Settings
) -> None:
    source = FITS_SMALL_ROWS.replace("128, 256", "256, 128") + BODY
    result = compile_candidate(request_for(compile_problem, source), settings)
    assert (result.status, result.builds) == (Status.PLAN_ERROR, ())
    assert "in the workload b32xh256" in result.diagnostics[0].message


def test_choice_that_does_not_fit_the_named_workload_is_refused(
    compile_problem: Problem, settings: Settings
) -> None:
    request = request_for(compile_problem, FITS_SMALL_ROWS + BODY, BLOCK=256)
    named = replace(
        request, case=replace(request.case, workload=compile_problem.workload("b32xh256"))
    )
    assert compile_candidate(named, settings).status is Status.PLAN_ERROR


@pytest.mark.parametrize("level", ["quick", "full"])
def test_full_check_covers_the_domain_whatever_was_left_out_before(
    compile_problem: Problem, level: str
) -> None:
    request = CheckRequest(
        case=Case(
            compile_problem,
            compile_problem.workload("b8xh64"),
            Candidate(FITS_SMALL_ROWS + BODY),
            {"BLOCK": 256},
        ),
        level="full" if level == "full" else "quick",
        arch="sm_100a",
    )
    plans = make_plans(request, gpu_for_arch("sm_100a"))
    if level == "quick":
        assert (list(plans.plans), plans.diagnostics) == (["b8xh64"], ())
    else:
        assert plans.plans == {}
        assert plans.diagnostics[0].severity == "error"
        assert plans.diagnostics[0].message.startswith("b32xh256 is claimed by `where`")
