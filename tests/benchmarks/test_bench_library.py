"""Kernels against libraries: which are measured where, and what a table says."""

import sys

import pytest
from bench_library import cases, main, table

from kopt.kernels.bench_result import RejectedBaseline
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.status import Status, Verdict
from support.bench_results import bench_result, comparison, failed_bench

GEMM = load_problems()["gemm_bf16"]


def test_every_timed_workload_is_measured_with_each_kernel_that_claims_it() -> None:
    timed = [one.name for one in GEMM.workloads if one.use == "time"]
    found = [(case.workload.name, case.candidate.name.split(".")[0]) for case in cases(GEMM)]
    assert list(dict.fromkeys(name for name, _ in found)) == timed
    assert {kernel for name, kernel in found if name == "m8192xn8192xk8192"} == {
        "gemm_mma",
        "gemm_wgmma",
    }
    assert ("m4096xn4095xk4096", "gemm_wgmma") not in found  # TMA cannot store rows at odd places
    assert ("m1xn4096xk4096", "gemm_split") in found


def test_a_table_has_both_times_and_the_ratio_with_its_interval() -> None:
    case = next(cases(GEMM))
    rejected = RejectedBaseline(name="flashinfer_cudnn", pdl=False, status="unavailable", reason="")
    text = table(
        case,
        bench_result(
            comparisons=(comparison(Verdict.FASTER), comparison(speedup=None, interval=None)),
            rejected=(rejected,),
        ),
    )
    row = "| m4096xn4096xk4096 | gemm_mma.sm_90a.cu | 2.39 | flashinfer_cute (PDL on) | 2.90 |"
    assert f"{row} 1.213x | 1.205 to 1.221 |" in text
    assert f"{row}  |  |" in text
    assert "m4096xn4096xk4096 left out: flashinfer_cudnn: " in text


def test_a_kernel_that_fails_has_its_status() -> None:
    assert table(next(cases(GEMM)), failed_bench(Status.INCORRECT)).endswith(": incorrect")


@pytest.mark.parametrize("name", ["gemm_bf16", "attention_decode", "attention_prefill"])
def test_each_problem_with_workloads_to_be_timed_has_a_kernel_for_every_one(name: str) -> None:
    problem = load_problems()[name]
    measured = {case.workload.name for case in cases(problem)}
    assert measured == {one.name for one in problem.workloads if one.use == "time"}


def test_a_name_that_no_problem_has_ends_the_program_with_those_that_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = ["bench_library.py", "--problem", "gemm_bf16", "--problem", "gemm_bf17"]
    monkeypatch.setattr(sys, "argv", asked)
    with pytest.raises(SystemExit, match="no problem is called gemm_bf17"):
        main()
