"""A cubin with lines is used only if its instructions are those of the shipped one."""

from pathlib import Path

from kopt.config.settings import Settings
from kopt.kernels.problem import Problem
from kopt.tools.cuda.compile_job import CompileContext, CompileJob
from kopt.tools.cuda.compile_stage import compile_candidate
from kopt.tools.cuda.nvcc import cubin_with_lines
from kopt.tools.cuda.toolchain import FoundToolchain
from support.compile_requests import request_for
from support.tiny_problem import BODY, HEADER


def test_lines_are_added_and_instructions_stay(
    settings: Settings, toolchain: FoundToolchain, compile_problem: Problem
) -> None:
    result = compile_candidate(
        request_for(compile_problem, HEADER + BODY, "sm_90a", BLOCK=128), settings
    )
    shipped = Path(result.builds[0].cubin_path).read_bytes()
    job = CompileJob(HEADER + BODY, "", "sm_90a", {"BLOCK": 128})
    lined = cubin_with_lines(job, shipped, CompileContext("nvcc", toolchain, settings))
    assert lined is not None
    assert b".debug_line" in lined
    assert b".debug_line" not in shipped


def test_other_instructions_are_refused(
    settings: Settings, toolchain: FoundToolchain, compile_problem: Problem
) -> None:
    result = compile_candidate(request_for(compile_problem, HEADER + BODY, "sm_90a"), settings)
    shipped = Path(result.builds[0].cubin_path).read_bytes()
    other = CompileJob((HEADER + BODY).replace("* scale", "+ scale"), "", "sm_90a", {"BLOCK": 128})
    assert cubin_with_lines(other, shipped, CompileContext("nvcc", toolchain, settings)) is None


def test_source_that_does_not_compile_has_none(
    settings: Settings, toolchain: FoundToolchain
) -> None:
    job = CompileJob("no CUDA", "", "sm_90a")
    assert cubin_with_lines(job, b"", CompileContext("nvcc", toolchain, settings)) is None
