"""Counters are measured or unavailable with a reason; nothing in their way ends a profile."""

from itertools import pairwise
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.kernels.candidate import Candidate
from kopt.kernels.case import Case
from kopt.kernels.counters import HardwareCounters, LaunchCounters
from kopt.kernels.problem import Problem
from kopt.kernels.status import Provenance
from kopt.tools.cuda.compile_stage import compile_candidate
from kopt.tools.cuda.toolchain import FoundToolchain
from kopt.tools.gpu.messages import Fault
from kopt.tools.gpu.one_shot_files import OneShotAnswer
from kopt.tools.profiling import counters
from kopt.tools.profiling.counters import ncu_arguments, read_counters
from kopt.tools.profiling.launchable import Launchable, make_launchable
from kopt.tools.profiling.ncu_report import ReportError
from kopt.tools.profiling.nvidia_tools import NvidiaTool
from support.compile_requests import request_for
from support.scripted_timer import ScriptedTimer
from support.scripted_tool import ToolScript, scripted_tool
from support.tiny_problem import BODY, HEADER

READ = LaunchCounters(kernel="scale_rows", time_us=3.0, compute_fraction=0.1)
REPORT = {"counters.ncu-rep": "what ncu would write"}


class Rig:
    """A compiled candidate and whatever program stands for ncu."""

    def __init__(
        self, settings: Settings, problem: Problem, folder: Path, patch: pytest.MonkeyPatch
    ) -> None:
        self.settings = settings
        self._folder = folder
        self._patch = patch
        compiled = compile_candidate(request_for(problem, HEADER + BODY, "sm_90a"), settings)
        case = Case(problem, problem.workload("b8xh64"), Candidate(HEADER + BODY))
        self.launchable: Launchable = make_launchable(case, compiled, ScriptedTimer().gpu)

    def read(
        self, script: ToolScript | None, read: tuple[LaunchCounters, ...] | ReportError = (READ,)
    ) -> HardwareCounters:
        """Read counters; a report, if there is one, holds `read`."""
        tool = None if script is None else scripted_tool(self._folder, script)

        def find(_: Settings) -> NvidiaTool | None:
            return tool

        def load(_: Path, __: Settings) -> tuple[LaunchCounters, ...]:
            if isinstance(read, ReportError):
                raise read
            return read

        self._patch.setattr(counters, "find_ncu", find)
        self._patch.setattr(counters, "read_report_apart", load)
        return read_counters(self.launchable, ScriptedTimer(), self.settings)


@pytest.fixture
def rig(
    settings: Settings,
    toolchain: FoundToolchain,
    compile_problem: Problem,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Rig:
    return Rig(settings, compile_problem, tmp_path, monkeypatch)


def test_report_is_read_and_kept(rig: Rig) -> None:
    found = rig.read(ToolScript(REPORT))
    assert (found.launches, found.provenance) == ((READ,), Provenance.MEASURED)
    assert found.report_path is not None
    assert Path(found.report_path).read_text() == REPORT["counters.ncu-rep"]
    assert Path(found.report_path).is_relative_to(rig.settings.home)
    assert (found.tool, found.notes) == ("scripted tool 1.0", ())


def test_missing_permission_says_how_to_get_it(rig: Rig) -> None:
    words = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access counters.\n"
    found = rig.read(ToolScript(REPORT, prints=words))
    assert (found.provenance, found.launches) == (Provenance.UNAVAILABLE, ())
    assert "NVreg_RestrictProfilingToAdminUsers=0" in str(found.reason)
    assert found.log_path is not None
    assert Path(found.log_path).read_text() == words


def test_missing_ncu_says_how_to_get_it(rig: Rig) -> None:
    found = rig.read(None)
    assert (found.provenance, found.tool) == (Provenance.UNAVAILABLE, None)
    assert "KOPT_NCU" in str(found.reason)


def test_report_that_cannot_be_read_is_unavailable(rig: Rig) -> None:
    found = rig.read(ToolScript(REPORT), ReportError("ncu-report is too old"))
    assert (found.provenance, found.reason) == (Provenance.UNAVAILABLE, "ncu-report is too old")
    assert found.report_path is not None


def test_error_of_ncu_is_the_reason(rig: Rig) -> None:
    words = "==PROF== Connected\n==ERROR== Failed to find metric x__y\n==PROF== Disconnected\n"
    found = rig.read(ToolScript(prints=words, returncode=1))
    assert "Failed to find metric x__y" in str(found.reason)


def test_fault_of_the_plan_is_the_reason(rig: Rig) -> None:
    fault = Fault(during="run", code="CUDA_ERROR_ILLEGAL_ADDRESS", message="illegal")
    found = rig.read(ToolScript(answer=OneShotAnswer(fault=fault)))
    assert "CUDA_ERROR_ILLEGAL_ADDRESS" in str(found.reason)


def test_other_kernels_than_those_launched_are_not_believed(rig: Rig) -> None:
    other = READ.model_copy(update={"kernel": "another"})
    found = rig.read(ToolScript(REPORT), (other,))
    assert (found.provenance, found.launches) == (Provenance.UNAVAILABLE, ())


def test_report_without_values_is_unavailable(rig: Rig) -> None:
    found = rig.read(ToolScript(REPORT), (LaunchCounters(kernel="scale_rows"),))
    assert found.provenance is Provenance.UNAVAILABLE


def test_clocks_are_left_alone_and_caches_are_flushed(rig: Rig) -> None:
    arguments = ncu_arguments(rig.launchable.plan, Path("/scratch"))
    pairs = dict(pairwise(arguments))
    assert (pairs["--clock-control"], pairs["--cache-control"]) == ("none", "all")
    assert (pairs["--kernel-name"], pairs["--launch-count"]) == ("regex:^(scale_rows)$", "1")
