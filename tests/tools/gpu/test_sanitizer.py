"""A sanitizer passes a candidate only with evidence, and says what to do where it cannot judge."""

from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.check_result import SanitizerResult
from kopt.kernels.problem import Problem
from kopt.kernels.status import Status
from kopt.tools.cuda.toolchain import FoundToolchain
from kopt.tools.gpu.messages import Fault
from kopt.tools.gpu.one_shot_files import OneShotAnswer, OneShotBuffer
from kopt.tools.profiling.nvidia_tools import NvidiaTool
from kopt.tools.sanitize import stage as sanitizer
from kopt.tools.sanitize.stage import SanitizeRequest, sanitize, sanitizer_arguments
from support.scripted_timer import ScriptedTimer
from support.scripted_tool import RAN, ToolScript, scripted_tool
from support.tiny_problem import BODY, HEADER

CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"
FINDING = (
    "========= COMPUTE-SANITIZER\n"
    "========= Invalid __global__ write of size 4 bytes\n"
    "=========     at scale_rows+0x90 in candidate.cu:12\n"
    "=========     by thread (64,0,0) in block (7,0,0)\n"
    "=========     Access to 0x7f0000000800 is out of bounds\n"
    "=========     and is 1 bytes after the nearest allocation at 0x7f0000000000 of size 2048 "
    "bytes\n"
    "=========\n"
    "========= ERROR SUMMARY: 1 error\n"
)
BUFFERS = (OneShotBuffer(name="out", address=0x7F0000000000, size_bytes=2048),)


class Rig:
    """One candidate and whatever program stands for compute-sanitizer."""

    def __init__(
        self, settings: Settings, problem: Problem, folder: Path, patch: pytest.MonkeyPatch
    ) -> None:
        self.settings = settings
        self.problem = problem
        self.folder = folder
        self._patch = patch

    def run(self, script: ToolScript | None, limit_s: float = 30.0) -> SanitizerResult:
        """Examine the candidate with memcheck alone."""
        tool = None if script is None else scripted_tool(self.folder, script)

        def find(_: Settings) -> NvidiaTool | None:
            return tool

        self._patch.setattr(sanitizer, "find_sanitizer", find)
        request = SanitizeRequest(
            case=Case(self.problem, self.problem.workload("b8xh64"), Candidate(HEADER + BODY)),
            tools=("memcheck",),
            limit_s=limit_s,
        )
        return sanitize(request, ScriptedTimer(), self.settings)


@pytest.fixture
def rig(
    settings: Settings,
    toolchain: FoundToolchain,
    compile_problem: Problem,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Rig:
    return Rig(settings, compile_problem, tmp_path, monkeypatch)


def test_clean_run_passes_and_names_log_and_sandbox(rig: Rig) -> None:
    result = rig.run(ToolScript({"log.txt": CLEAN}))
    (run,) = result.runs
    assert (result.status, run.outcome, run.reason) == (Status.PASSED, "passed", None)
    assert result.is_complete
    assert run.log_path is not None
    assert Path(run.log_path).read_text() == CLEAN
    assert Path(run.log_path).is_relative_to(rig.settings.home)
    assert run.sandbox is not None


def test_finding_is_the_status_with_line_and_tensor(rig: Rig) -> None:
    answer = OneShotAnswer(
        buffers=BUFFERS,
        fault=Fault(during="run", code="CUDA_ERROR_LAUNCH_FAILED", message="failed"),
    )
    result = rig.run(ToolScript({"log.txt": FINDING}, answer))
    (run,) = result.runs
    assert (result.status, run.outcome) == (Status.OUT_OF_BOUNDS, "findings")
    assert run.findings[0].line == 12
    assert "`out`" in run.findings[0].message


def test_summary_without_a_run_to_the_end_is_no_pass(rig: Rig) -> None:
    (run,) = rig.run(ToolScript({"log.txt": CLEAN}, OneShotAnswer(buffers=BUFFERS))).runs
    assert run.outcome == "unavailable"


def test_child_that_never_started_is_no_pass(rig: Rig) -> None:
    result = rig.run(ToolScript({"log.txt": CLEAN}, answer=None, prints="no CUDA here\n"))
    (run,) = result.runs
    assert run.outcome == "unavailable"
    assert run.reason is not None
    assert "no CUDA here" in run.reason
    assert not result.is_complete


def test_log_without_summary_is_no_pass(rig: Rig) -> None:
    (run,) = rig.run(ToolScript({"log.txt": "========= COMPUTE-SANITIZER\n"}, RAN)).runs
    assert run.outcome == "unavailable"


def test_errors_that_cannot_be_read_are_no_pass(rig: Rig) -> None:
    log = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 3 errors\n"
    (run,) = rig.run(ToolScript({"log.txt": log})).runs
    assert run.outcome == "unavailable"
    assert run.reason is not None
    assert "3 errors" in run.reason


def test_fault_that_the_tool_does_not_explain_is_no_pass(rig: Rig) -> None:
    fault = Fault(during="launch", code="CUDA_ERROR_OUT_OF_MEMORY", message="out of memory")
    (run,) = rig.run(ToolScript({"log.txt": CLEAN}, OneShotAnswer(fault=fault))).runs
    assert run.outcome == "unavailable"
    assert run.reason is not None
    assert "CUDA_ERROR_OUT_OF_MEMORY" in run.reason


def test_run_that_does_not_end_is_a_timeout_of_the_tool(rig: Rig) -> None:
    result = rig.run(ToolScript(hangs=True, answer=None), limit_s=1.0)
    assert result.runs[0].outcome == "timeout"
    assert result.status is Status.PASSED
    assert not result.is_complete


def test_machine_without_sanitizer_says_how_to_get_one(rig: Rig) -> None:
    result = rig.run(None)
    assert result.sanitizer is None
    assert [run.outcome for run in result.runs] == ["unavailable"]
    assert "CUDA_HOME" in str(result.runs[0].reason)


def test_candidate_that_does_not_compile_is_not_examined(rig: Rig) -> None:
    request = SanitizeRequest(
        Case(
            rig.problem,
            rig.problem.workload("b8xh64"),
            Candidate(HEADER + BODY.replace("scale;", "scales;")),
        )
    )
    result = sanitize(request, ScriptedTimer(), rig.settings)
    assert (result.status, result.runs) == (Status.COMPILE_ERROR, ())
    assert result.diagnostics
    assert not result.is_complete


def test_shared_memory_is_checked_where_the_tool_can(tmp_path: Path) -> None:
    old = scripted_tool(tmp_path, ToolScript())
    new = NvidiaTool(old.path, old.name, old.root, frozenset({"initcheck-address-space"}))
    assert "all" in sanitizer_arguments("initcheck", new, tmp_path)
    assert "--initcheck-address-space" not in sanitizer_arguments("initcheck", old, tmp_path)


def test_allocations_are_kept_apart_where_the_tool_can(tmp_path: Path) -> None:
    old = scripted_tool(tmp_path, ToolScript())
    new = NvidiaTool(old.path, old.name, old.root, frozenset({"padding"}))
    assert "--padding" in sanitizer_arguments("memcheck", new, tmp_path)
    assert "--padding" not in sanitizer_arguments("memcheck", old, tmp_path)
    assert "--padding" not in sanitizer_arguments("racecheck", new, tmp_path)


def test_json_comes_back_the_same(rig: Rig) -> None:
    result = rig.run(ToolScript({"log.txt": FINDING}))
    text = result.model_dump_json(by_alias=True)
    assert '"schema":"kopt.sanitizer/1"' in text
    assert SanitizerResult.model_validate_json(text) == result
