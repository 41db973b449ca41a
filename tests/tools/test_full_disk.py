"""A full disk under a compiler is the machine's fault, and is forgotten as soon as it is mended."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kopt.config.errors import SetupError
from kopt.config.settings import Settings
from kopt.kernels.status import Status
from kopt.tools.cuda import nvcc
from kopt.tools.cuda.compile_job import CompileContext, CompileJob
from kopt.tools.cuda.compile_unit import compile_unit
from kopt.tools.cuda.full_disk import refuse_full_disk
from kopt.tools.cuda.toolchain import FoundToolchain
from kopt.tools.sandbox.policy import SandboxedRun
from kopt.tools.sim import program, toolset
from kopt.tools.sim.program import build_program
from kopt.tools.sim.program_facts import SimProgram
from kopt.tools.sim.toolset import find_toolset
from support.sim_run import SimCase

KERNEL = 'extern "C" __global__ void k(int* out) { out[threadIdx.x] = 7; }'
NVCC_SAID = (
    "<built-in>: fatal error: when writing output to tmp/tmpxft_candidate.cpp1.ii: "
    "No space left on device\ncompilation terminated.\n"
)
GXX_SAID = (
    "candidate.cu:1:58: fatal error: error writing to unit.s: Disk quota exceeded\n"
    "    1 | int main() {}\n      |             ^\ncompilation terminated.\n"
)


def _ending_with(said: str) -> Any:
    """Return what stands for the sandbox: every program fails and says so."""

    def run(*_: object) -> SandboxedRun:
        return SandboxedRun(1, b"", said.encode(), b"", False, False, 0, "plain", 0.1)

    return run


def test_full_disk_under_nvcc_names_the_folder_and_is_not_remembered(
    settings: Settings, toolchain: FoundToolchain
) -> None:
    context = CompileContext("nvcc", toolchain, settings)
    job = CompileJob(source=KERNEL, plan_assertions="// full disk", arch="sm_90a")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nvcc, "run_sandboxed", _ending_with(NVCC_SAID))
        with pytest.raises(SetupError, match=r"No space left on device; free some") as caught:
            compile_unit(job, context)
    assert str(settings.cubin_cache) in str(caught.value)
    outcome = compile_unit(job, context)
    assert (outcome.unit.status, outcome.cached) == (Status.PASSED, False)


def test_used_up_quota_under_the_simulators_compiler_is_no_fact_about_the_candidate(
    settings: Settings,
) -> None:
    case = SimCase(KERNEL, outputs={"out": np.zeros(32, np.int32)})
    with pytest.MonkeyPatch.context() as patch:
        find_toolset(settings)
        patch.setattr(program, "run_sandboxed", _ending_with(GXX_SAID))
        with pytest.raises(SetupError, match="Disk quota exceeded; free some") as caught:
            build_program(case.program, settings)
    assert str(settings.sim_cache) in str(caught.value)
    assert isinstance(build_program(case.program, settings), SimProgram)


def test_full_disk_under_the_simulators_runtime_blames_no_compiler(
    settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = "device.h:9:1: fatal error: cannot write PCH file: No space left on device"
    monkeypatch.setattr(toolset, "run_sandboxed", _ending_with(said))
    with pytest.raises(SetupError, match="No space left on device; free some") as caught:
        find_toolset(replace(settings, home=tmp_path))
    assert "C++17" not in str(caught.value)


@pytest.mark.parametrize(
    "said",
    [
        "candidate.cu(1): error: #error directive: x: No space left on device",
        "candidate.cu:1:2: error: static assertion failed: No space left on device",
        "candidate.cu:1:10: fatal error: No space left on device: No such file or directory",
        "candidate.cu(4): error: identifier is undefined\n  // x: No space left on device",
        "    4 | // x: No space left on device",
    ],
)
def test_words_of_a_source_are_no_full_disk(said: str, tmp_path: Path) -> None:
    refuse_full_disk(said, tmp_path)


@pytest.mark.parametrize(
    "said",
    [
        "/usr/bin/ld: final link failed: No space left on device",
        "unit.s: Fatal error: can't write 14 bytes to section .text of unit.o: "
        "'No space left on device'",
    ],
)
def test_assembler_and_linker_are_understood(said: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="KOPT_HOME"):
        refuse_full_disk(f"before\n{said}\nafter", tmp_path)
