"""Work as tool calls ask for it, on the simulator."""

from collections.abc import Generator
from pathlib import Path

import pytest

from kopt.config.errors import SetupError, ToolError
from kopt.config.folder_owner import may_see
from kopt.config.settings import Settings
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.check_result import CheckResult
from kopt.kernels.compile_result import CompileResult
from kopt.kernels.profile_result import ProfileResult
from kopt.kernels.status import Provenance, Status, Verdict
from kopt.search.step.result import StepResult
from kopt.server.jobs.records import Progress
from kopt.server.work.perform import perform
from kopt.server.work.requests import (
    BenchWork,
    CheckWork,
    CompileWork,
    ProfileWork,
    StepWork,
    SubmittedCandidate,
    Work,
)
from kopt.server.work.work_site import WarmDevices, WorkSite
from support.job_works import KERNEL, REFERENCE, job_settings

SYNTAX_ERROR = REFERENCE + "\n}\n"
NO_DEVICE = "cuda:63"


@pytest.fixture
def told() -> list[Progress]:
    return []


@pytest.fixture
def site(tmp_path: Path, shared_home: Path, told: list[Progress]) -> Generator[WorkSite]:
    settings = job_settings(tmp_path / "home", shared_home)
    devices = WarmDevices(settings)
    yield WorkSite(settings, "job-20260101-000000-00000000", told.append, devices, "token:1")
    devices.close()


def test_a_compile_gives_each_architecture_once(site: WorkSite) -> None:
    work = CompileWork(kernel=KERNEL, source=REFERENCE, arch=("sm_90a", "sm_100a", "sm_90a"))
    result = perform(work, site)
    assert isinstance(result, CompileResult)
    assert result.status is Status.PASSED
    assert [build.arch for build in result.builds] == ["sm_90a", "sm_100a"]


def test_a_candidate_that_does_not_compile_is_a_result(site: WorkSite) -> None:
    result = perform(CompileWork(kernel=KERNEL, source=SYNTAX_ERROR, path="mine.cu"), site)
    assert isinstance(result, CompileResult)
    assert result.status is Status.COMPILE_ERROR
    assert result.diagnostics[0].line is not None


def test_a_check_on_sim_passes_and_tells_its_steps(site: WorkSite, told: list[Progress]) -> None:
    result = perform(CheckWork(kernel=KERNEL, source=REFERENCE, device="sim"), site)
    assert isinstance(result, CheckResult)
    assert (result.status, result.device, result.level) == (Status.PASSED, "sim", "quick")
    assert [progress.done for progress in told] == list(range(1, len(told) + 1))
    assert told[0].message == "compiling"


def test_a_benchmark_on_sim_is_an_estimate(site: WorkSite) -> None:
    result = perform(BenchWork(kernel=KERNEL, source=REFERENCE, device="sim"), site)
    assert isinstance(result, BenchResult)
    assert (result.status, result.verdict) == (Status.PASSED, Verdict.ESTIMATED)
    assert result.latency is not None
    assert result.latency.provenance is Provenance.ESTIMATED


def test_a_profile_on_sim_names_a_bottleneck(site: WorkSite) -> None:
    result = perform(ProfileWork(kernel=KERNEL, source=REFERENCE, device="sim"), site)
    assert isinstance(result, ProfileResult)
    assert result.status is Status.PASSED
    assert result.bottleneck is not None


@pytest.mark.slow  # a whole step
def test_a_step_begins_a_run_and_the_same_step_is_not_taken_twice(
    site: WorkSite, told: list[Progress]
) -> None:
    candidate = SubmittedCandidate(source=REFERENCE + "\n// mine\n", hypothesis="a comment helps")
    work = StepWork(kernel=KERNEL, candidates=(candidate,), device="sim")
    first, again = perform(work, site), perform(work, site)
    assert isinstance(first, StepResult) and isinstance(again, StepResult)
    assert [one.status for one in first.candidates] == [Status.PASSED]
    assert (again.run, again.round) == (first.run, first.round)
    assert any("round 1" in progress.message for progress in told)


@pytest.mark.slow  # a whole run
def test_a_run_goes_on_by_its_id_and_remembers_its_best(
    site: WorkSite, told: list[Progress]
) -> None:
    one, broken = (SubmittedCandidate(source=f"{REFERENCE}{end}\n") for end in ("// 1", "}"))
    begun = perform(StepWork(kernel=KERNEL, candidates=(one,), device="sim"), site)
    assert isinstance(begun, StepResult)
    assert not may_see("token:2", site.settings.runs / begun.run)
    later = WorkSite(site.settings, "job-20260101-000000-00000001", site.say, site.devices)
    told.clear()
    result = perform(StepWork(run_id=begun.run, candidates=(broken,)), later)
    assert isinstance(result, StepResult)
    assert (result.run, result.device, result.round) == (begun.run, "sim", 2)
    (done,) = (progress.message for progress in told if "compile_error" in progress.message)
    assert "; best " in done


@pytest.mark.parametrize(
    ("work", "says"),
    [
        (CompileWork(kernel="silu", source=REFERENCE), "no kernel is called 'silu'"),
        (CompileWork(kernel=KERNEL, source=REFERENCE, arch=("sm_1",)), "'sm_1' is no arch"),
        (CompileWork(kernel=KERNEL, source=REFERENCE, tune={"NO": 1}), "^tune NO=1: candidate.cu"),
        (CompileWork(kernel=KERNEL, source="x" * (1 << 20) + "x"), "at most 1048576"),
        (CheckWork(kernel=KERNEL, source=REFERENCE, device="gpu"), "'gpu' is unknown"),
        (StepWork(), "name a kernel, which begins"),
        (StepWork(run_id="run-1"), "no run matches 'run-1'"),
    ],
)
def test_a_mistake_of_the_caller_is_refused(site: WorkSite, work: Work, says: str) -> None:
    if isinstance(work, CheckWork) and work.device == "auto":
        work = work.model_copy(update={"device": "sim"})
    with pytest.raises(ToolError, match=says):
        perform(work, site)


@pytest.mark.parametrize("name", ["../../etc/passwd", "a\0b.cu", "x" * 5000, "", "-o.cu"])
def test_a_hostile_file_name_is_only_a_word_in_messages(site: WorkSite, name: str) -> None:
    for source, status in ((REFERENCE, Status.PASSED), (SYNTAX_ERROR, Status.COMPILE_ERROR)):
        work = CompileWork(kernel=KERNEL, source=source, path=name)
        result = perform(work, site)
        assert isinstance(result, CompileResult)
        assert result.status is status


def test_a_missing_gpu_is_the_machines_and_sim_is_offered(site: WorkSite) -> None:
    work = CheckWork(kernel=KERNEL, source=REFERENCE, device=NO_DEVICE)
    with pytest.raises(SetupError, match='or use device "sim"'):
        perform(work, site)


def test_a_device_stays_open_until_it_is_closed(tmp_path: Path, shared_home: Path) -> None:
    settings: Settings = job_settings(tmp_path / "home", shared_home)
    devices = WarmDevices(settings)
    shown: list[str] = []
    with devices.use("sim", shown.append) as first:
        pass
    with devices.use("sim", shown.append) as second:
        assert second is first
    assert not devices.is_empty
    devices.close()
    assert devices.is_empty
    with devices.use("sim", shown.append) as third:
        assert third is not first
