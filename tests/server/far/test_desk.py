"""What the other machine answers, without a connection: files kept, refusals, NVIDIA's tools."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt
import pytest

from kopt.config.errors import ToolError
from kopt.config.gpu_specs import load_gpus
from kopt.config.settings import Settings
from kopt.kernels.candidate import read_candidate
from kopt.kernels.case import Case
from kopt.kernels.counters import LaunchCounters
from kopt.kernels.plan_resolver import resolve_plan
from kopt.kernels.problem_loader import load_problem
from kopt.kernels.status import Provenance
from kopt.server.far.desk import Answered, Desk, FarLane, Helpers
from kopt.server.far.sent_files import SentFiles
from kopt.tools.devices.device import Device
from kopt.tools.devices.examination import CounterReading, ExaminedCall, SanitizerReading
from kopt.tools.profiling import counters
from kopt.tools.profiling.launchable import timing_inputs
from kopt.tools.profiling.nvidia_tools import NvidiaTool
from kopt.tools.remote.answers import CountersAnswer, DoneAnswer, OpenedAnswer, SanitizerAnswer
from kopt.tools.remote.calls import (
    CALL,
    Call,
    CopyCeilingCall,
    CountersCall,
    HasFolderCall,
    OpenCall,
    ReplayCall,
    SanitizeCall,
    StoreFolderCall,
)
from kopt.tools.remote.sending import file_arrays, files_among, folder_digest
from kopt.tools.remote.sent_kernel import FolderName, SentShot
from kopt.tools.sanitize import stage as sanitizer
from kopt.tools.sim.device import SimDevice
from support.bench_results import H100
from support.named_gpu import NamedGpu
from support.scripted_tool import ToolScript, scripted_tool
from support.tiny_problem import write_tiny_problem

CLEAN = "========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n"


@dataclass
class _Rig:
    """A desk with one open device."""

    desk: Desk
    settings: Settings

    def ask(self, call: Call, **arrays: npt.NDArray[Any]) -> Answered:
        """Return the answer to a call that went through the form of the wire."""
        return self.desk.answer(CALL.validate_json(CALL.dump_json(call)), dict(arrays), FarLane())


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path / "home")


def _rig(settings: Settings, device: Device) -> _Rig:
    def open_here(
        name: str, *, has_spare: bool, helpers: Helpers, told: Callable[[str], None]
    ) -> Device:
        del has_spare, helpers, told
        assert name == device.name
        return device

    rig = _Rig(Desk(open_here, settings, lambda _: None), settings)
    answer, _ = rig.ask(OpenCall(device=device.name, has_spare=False))
    assert isinstance(answer, OpenedAnswer)
    assert answer.facts == (None if device.gpu is None else H100)
    return rig


@pytest.fixture
def call(tmp_path: Path) -> ExaminedCall:
    """Return a call of the tiny kernel; its cubin is none, since no tool of a test loads it."""
    folder = write_tiny_problem(tmp_path)
    problem = load_problem(folder)
    case = Case(problem, problem.workloads[0], read_candidate(folder / "reference.cu"))
    plan = resolve_plan(case, load_gpus()["H100"]).plan
    assert plan is not None
    return ExaminedCall(problem, case.workload, plan, b"cubin", timing_inputs(case))


def _finding(tool: NvidiaTool | None) -> Callable[[Settings], NvidiaTool | None]:
    def find(_: Settings) -> NvidiaTool | None:
        return tool

    return find


def _shot(call: ExaminedCall) -> SentShot:
    return SentShot(problem=call.problem, workload=call.workload, plan=call.plan)


def test_counters_come_with_report_and_log(
    settings: Settings, call: ExaminedCall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = ToolScript({"counters.ncu-rep": "a report"}, prints="ncu was here\n")
    tool = scripted_tool(tmp_path, script)
    launches = (LaunchCounters(kernel=call.plan.launches[0].kernel, time_us=3.5),)

    def read(_: Path, __: Settings) -> tuple[LaunchCounters, ...]:
        return launches

    monkeypatch.setattr(counters, "find_ncu", _finding(tool))
    monkeypatch.setattr(counters, "read_report_apart", read)
    rig = _rig(settings, NamedGpu())
    files = file_arrays({"cubin": call.cubin})
    answer, sent = rig.ask(CountersCall(shot=_shot(call)), **call.inputs, **files)
    assert isinstance(answer, CountersAnswer)
    here = tmp_path / "here"
    here.mkdir()
    found = CounterReading(answer.counters, files_among(sent)).kept_in(here)
    assert (found.provenance, found.launches) == (Provenance.MEASURED, launches)
    assert found.report_path == str(here / "counters.ncu-rep")
    assert (here / "counters.ncu-rep").read_text() == "a report"
    assert "ncu was here" in Path(found.log_path or "").read_text()


def test_a_sanitizer_s_runs_come_with_their_logs(
    settings: Settings, call: ExaminedCall, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = scripted_tool(tmp_path, ToolScript({"log.txt": CLEAN}))
    monkeypatch.setattr(sanitizer, "find_sanitizer", _finding(tool))
    rig = _rig(settings, NamedGpu())
    asked = SanitizeCall(shot=_shot(call), tools=("memcheck", "racecheck"), limit_s=30.0)
    files = file_arrays({"cubin": call.cubin})
    answer, sent = rig.ask(asked, **call.inputs, **files)
    assert isinstance(answer, SanitizerAnswer)
    here = tmp_path / "here"
    here.mkdir()
    reading = SanitizerReading(answer.program, answer.runs, files_among(sent))
    runs = reading.kept_in(here)
    assert reading.program == "scripted tool 1.0"
    assert [(run.tool, run.outcome) for run in runs] == [
        ("memcheck", "passed"),
        ("racecheck", "passed"),
    ]
    for run in runs:
        assert run.log_path == str(here / f"{run.tool}-log.txt")
        assert Path(run.log_path or "").read_text() == CLEAN


def test_a_machine_without_the_tools_says_how_to_get_them(
    settings: Settings, call: ExaminedCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(counters, "find_ncu", _finding(None))
    rig = _rig(settings, NamedGpu())
    files = file_arrays({"cubin": call.cubin})
    answer, sent = rig.ask(CountersCall(shot=_shot(call)), **call.inputs, **files)
    assert isinstance(answer, CountersAnswer)
    assert answer.counters.provenance is Provenance.UNAVAILABLE
    assert answer.counters.reason is not None
    assert "install Nsight Compute" in answer.counters.reason
    assert sent == {}


def test_a_folder_is_kept_by_its_content(settings: Settings) -> None:
    rig = _rig(settings, NamedGpu())
    files = {"baseline.py": b"import flashinfer\n", "data/weights.bin": bytes(5)}
    digest = folder_digest(files)
    assert rig.ask(HasFolderCall(digest=digest))[0] == DoneAnswer(is_there=False)
    rig.ask(StoreFolderCall(digest=digest), **file_arrays(files))
    assert rig.ask(HasFolderCall(digest=digest))[0] == DoneAnswer(is_there=True)
    folder = SentFiles(settings).folder(FolderName(digest=digest))
    found = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert {name: (folder / name).read_bytes() for name in found} == files


def test_no_caller_puts_files_in_the_place_of_anothers(settings: Settings) -> None:
    rig = _rig(settings, NamedGpu())
    digest = folder_digest({"baseline.py": b"import flashinfer\n"})
    slow = file_arrays({"baseline.py": b"import time\n"})
    with pytest.raises(ToolError, match="not those of the folder"):
        rig.ask(StoreFolderCall(digest=digest), **slow)
    assert rig.ask(HasFolderCall(digest=digest))[0] == DoneAnswer(is_there=False)


@pytest.mark.parametrize("name", ["../evil.py", "/etc/evil.py", "a/../../evil.py"])
def test_a_file_outside_its_folder_is_refused(settings: Settings, name: str) -> None:
    rig = _rig(settings, NamedGpu())
    files = {name: b""}
    with pytest.raises(ToolError, match="a file called"):
        rig.ask(StoreFolderCall(digest=folder_digest(files)), **file_arrays(files))
    with pytest.raises(ToolError, match="is no digest"):
        rig.ask(HasFolderCall(digest="../../etc"))
    with pytest.raises(ToolError, match="no folder abc was sent"):
        SentFiles(settings).folder(FolderName(digest="abc"))


def test_what_the_open_device_cannot_do_is_refused(settings: Settings) -> None:
    rig = _rig(settings, SimDevice(settings))
    with pytest.raises(ToolError, match="measures no time"):
        rig.ask(CopyCeilingCall())
    with pytest.raises(ToolError, match="no timing session is open"):
        rig.ask(ReplayCall(sequences=((0,),)))
