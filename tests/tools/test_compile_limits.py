"""The compile stage and its compilers: time limit, interrupt, NVRTC, another toolkit."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem import Problem
from kopt.kernels.problem_loader import load_problems
from kopt.kernels.status import Status
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
from support.compile_requests import request_for
from support.shared_caches import share_caches
from support.tiny_problem import BODY, HEADER

BOMB = """
template <int N, int M> struct Bomb { static constexpr int value =
    Bomb<N - 1, 2 * M>::value + Bomb<N - 1, 2 * M + 1>::value; };
template <int M> struct Bomb<0, M> { static constexpr int value = M; };
__device__ int sink() { return Bomb<26, 0>::value; }
"""
SYSTEM_NVCC = Path("/usr/local/cuda/bin/nvcc")


def test_a_compile_that_takes_too_long_is_a_timeout(
    compile_problem: Problem, settings: Settings
) -> None:
    request = replace(request_for(compile_problem, HEADER + BOMB + BODY), limit_s=1.0)
    result = compile_candidate(request, settings)
    assert result.status == Status.TIMEOUT
    assert (result.builds, result.log_path) == ((), None)


INTERRUPTED = """
import sys
from pathlib import Path
from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.problem_loader import load_problem
from kopt.tools.cuda.compile_stage import CompileRequest, compile_candidate
problem = load_problem(Path(sys.argv[2]))
case = Case(problem, problem.workloads[0], Candidate(Path(sys.argv[3]).read_text()))
archs = ("sm_100a", "sm_90a")
settings = Settings(home=Path(sys.argv[1]), jobs=2)
compile_candidate(CompileRequest(case, archs), settings)
"""


@pytest.mark.slow  # compilers that have much to do
def test_an_interrupt_ends_the_compilers_at_once(
    compile_problem: Problem, shared_caches: Path, tmp_path: Path
) -> None:
    (tmp_path / "bomb.cu").write_text(HEADER + BOMB + BODY, "utf-8")
    # Its compiles lie below its own home: others of the run are not taken for them.
    home = share_caches(tmp_path / "home", shared_caches, ("sandbox",))
    arguments = [home, compile_problem.folder, tmp_path / "bomb.cu"]
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", INTERRUPTED, *map(str, arguments)],
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    )
    try:
        deadline = time.monotonic() + 60
        while len(compilers_of(home)) < 2 and time.monotonic() < deadline:
            os.sched_yield()
        assert len(compilers_of(home)) == 2
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)  # the compilers' own limit is a minute
        assert process.returncode == -signal.SIGINT
        while compilers_of(home) and time.monotonic() < deadline:
            os.sched_yield()  # an orphan is ended by its sandbox, not by its parent
        assert compilers_of(home) == []
    finally:
        process.kill()
        process.communicate()


def compilers_of(home: Path) -> list[str]:
    """The front ends (cicc) that run for this home."""
    found: list[str] = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            program, *_ = (path / "cmdline").read_bytes().split(b"\0")
            folder = os.readlink(path / "cwd")
        except OSError:
            continue
        if program.endswith(b"cicc") and folder.startswith(str(home)):
            found.append(path.name)
    return found


def test_nvrtc_compiles_a_reference_kernel_with_its_assertions(settings: Settings) -> None:
    problem = load_problems()["nvfp4_quantize"]
    source = (problem.folder / "reference.cu").read_text("utf-8")
    request = CompileRequest(
        Case(problem, problem.workloads[0], Candidate(source)), ("sm_100a",), compiler="nvrtc"
    )
    result = compile_candidate(request, settings)
    assert result.status == Status.PASSED, result.diagnostics
    assert {build.toolchain.compiler for build in result.builds} == {"nvrtc"}


@pytest.mark.skipif(not SYSTEM_NVCC.is_file(), reason="this machine has no system CUDA toolkit")
def test_a_system_toolkit_without_its_own_disassembler_works(
    compile_problem: Problem, settings: Settings
) -> None:
    result = compile_candidate(
        request_for(compile_problem, HEADER + BODY), replace(settings, nvcc=SYSTEM_NVCC)
    )
    assert result.status == Status.PASSED, result.diagnostics
    (build,) = result.builds
    assert build.toolchain.origin == "setting"
    assert build.kernels[0].instructions is not None  # read with the pip toolkit's nvdisasm
