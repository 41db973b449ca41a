"""What takes a machine's memory is the candidate's own fault, and ends in one clear status."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status
from kopt.tools.cuda import nvcc
from kopt.tools.cuda.compile_stage import compile_candidate
from kopt.tools.sandbox.policy import compiler_memory_bytes, out_of_memory_words
from support.compile_requests import request_for
from support.tiny_problem import BODY, HEADER

MACRO_BOMB = """
#define A(x) x x x x x x x x
#define B(x) A(A(A(A(x))))
__device__ void sink(float* x) { B(B(x[0] += 1.0f;)) }
"""


@pytest.mark.parametrize("sandbox", ["auto", "landlock", "plain"])
def test_a_compile_bomb_ends_as_the_candidate_s_own_fault(
    compile_problem: Problem, settings: Settings, monkeypatch: pytest.MonkeyPatch, sandbox: str
) -> None:
    monkeypatch.setattr(nvcc, "compiler_memory_bytes", lambda: 512 << 20)
    request = request_for(compile_problem, HEADER + MACRO_BOMB + BODY)
    result = compile_candidate(request, replace(settings, sandbox=sandbox))
    assert result.status is Status.COMPILE_ERROR
    (told,) = result.diagnostics
    assert "of memory and was stopped" in told.message
    assert told.hint is not None and "macros" in told.hint


@pytest.mark.slow  # compiles up to the limit of memory
@pytest.mark.parametrize("size", ["1ULL << 31", "1ULL << 33"])
def test_gigabytes_of_module_data_are_the_candidate_s_own_fault(
    compile_problem: Problem, settings: Settings, size: str
) -> None:
    data = f"__device__ char big[{size}];\n__device__ char* sink() {{ return big; }}\n"
    body = BODY.replace("{", "{ if (sink() == nullptr) return;", 1)
    result = compile_candidate(request_for(compile_problem, HEADER + data + body), settings)
    assert result.status is Status.COMPILE_ERROR
    assert "variables of module scope take" in result.diagnostics[0].message
    assert "scratch" in (result.diagnostics[0].hint or "")


def test_the_limit_leaves_half_of_the_machine() -> None:
    pages = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    total = int(pages["MemTotal"].split()[0]) << 10
    assert 0 < compiler_memory_bytes() <= min(8 << 30, total // 2 + (1 << 20))


@pytest.mark.parametrize(
    "said",
    [
        "LLVM ERROR: out of memory\nAborted",
        "cc1plus: out of memory allocating 270532592 bytes after a total of 38387712 bytes",
        "terminate called after throwing an instance of 'std::bad_alloc'",
        "as: memory exhausted",
    ],
)
def test_compilers_whose_memory_was_up_are_understood(said: str) -> None:
    assert out_of_memory_words(said) is not None
    assert out_of_memory_words("error: expected a ;") is None
