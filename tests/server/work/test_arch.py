"""The architecture that a tool call names: what sim estimates for, and what a GPU refuses."""

from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.callbacks import ignore
from kopt.config.errors import ToolError
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.profile_result import ProfileResult
from kopt.search.step.result import StepResult
from kopt.server.opened_device import DeviceChoice, OpenedDevice, compiled_for, opened_device
from kopt.server.protocol.replies.reply import job_reply
from kopt.server.work.perform import perform
from kopt.server.work.requests import (
    BenchWork,
    CheckWork,
    ProfileWork,
    StepWork,
    SubmittedCandidate,
    Work,
)
from kopt.server.work.work_site import WarmDevices, WorkSite
from kopt.tools.check.request import CheckRequest
from support.job_views import done_job
from support.job_works import KERNEL, REFERENCE, job_settings
from support.named_gpu import NamedGpu
from support.sound_replies import sound

pytestmark = pytest.mark.slow  # profiles and benchmarks on sim

OTHER = "sm_80"
"""No target of a GPU that tests name, nor the default."""
SOURCE = SubmittedCandidate(source=REFERENCE)


@pytest.fixture
def site(tmp_path: Path, shared_home: Path) -> Generator[WorkSite]:
    settings = job_settings(tmp_path / "home", shared_home)
    devices = WarmDevices(settings)
    yield WorkSite(settings, "job-20260101-000000-00000000", ignore, devices)
    devices.close()


def work_for(kind: type[BenchWork | CheckWork | ProfileWork], arch: str) -> Work:
    return kind(kernel=KERNEL, source=REFERENCE, device="sim", arch=arch)


def test_sim_estimates_for_the_named_gpu_and_the_reply_says_which(site: WorkSite) -> None:
    default = perform(work_for(BenchWork, ""), site)
    other = perform(work_for(BenchWork, OTHER), site)
    assert isinstance(default, BenchResult) and isinstance(other, BenchResult)
    assert other.memory_floor_us != default.memory_floor_us
    assert [build.arch for build in other.check.compiled.builds] == [OTHER]
    done = done_job(other)
    asked = done.request.model_copy(update={"work": work_for(BenchWork, OTHER)})
    facts = sound(job_reply(done.model_copy(update={"request": asked}), "concise"))
    assert facts["estimated"]["gpu"] == f"A100 ({OTHER})"
    assert f"arch={OTHER}" in facts["next"]
    assert "arch=" not in sound(job_reply(done_job(default), "concise"))["next"]


def test_a_profile_stands_on_the_data_sheet_of_its_target(site: WorkSite) -> None:
    result = perform(work_for(ProfileWork, OTHER), site)
    assert isinstance(result, ProfileResult)
    assert (result.arch, result.gpu) == (OTHER, "A100")


def test_a_gpu_that_shares_its_architecture_has_its_own_data_sheet(site: WorkSite) -> None:
    hopper = perform(work_for(BenchWork, "sm_90a"), site)
    h200 = perform(work_for(BenchWork, "H200"), site)
    assert isinstance(hopper, BenchResult) and isinstance(h200, BenchResult)
    assert hopper.memory_floor_us and h200.memory_floor_us
    assert h200.memory_floor_us / hopper.memory_floor_us == pytest.approx(3350 / 4800)
    assert [build.arch for build in h200.check.compiled.builds] == ["sm_90a"]
    assert sound(job_reply(done_job(h200), "concise"))["estimated"]["gpu"] == "H200 (sm_90a)"
    profiled = perform(work_for(ProfileWork, "H200"), site)
    assert isinstance(profiled, ProfileResult)
    assert (profiled.arch, profiled.gpu, profiled.device) == ("sm_90a", "H200", "sim:H200")


def test_a_run_stays_with_the_gpu_that_its_first_step_named(site: WorkSite) -> None:
    first = perform(StepWork(kernel=KERNEL, device="sim", arch="H200", candidates=(SOURCE,)), site)
    assert isinstance(first, StepResult)
    assert (first.device, first.arch) == ("sim:H200", "sm_90a")
    later = replace(site, key=f"{site.key[:-1]}1")
    again = perform(StepWork(run_id=first.run, device="sim", candidates=(SOURCE,)), later)
    assert isinstance(again, StepResult)
    assert again.device == "sim:H200"
    for other in ("sm_100a", "B200"):
        work = StepWork(run_id=first.run, arch=other, candidates=(SOURCE,))
        with pytest.raises(ToolError, match=f"is a run for sm_90a, not for {other}"):
            perform(work, later)
    for other in ("sim:A100", "ssh://box/sim"):
        with pytest.raises(ToolError, match=f"estimates of sim:H200, not of {other}"):
            perform(StepWork(run_id=first.run, device=other, candidates=(SOURCE,)), later)


def test_the_simulator_of_one_gpu_is_not_asked_for_another(site: WorkSite) -> None:
    with opened_device(DeviceChoice("sim:H200"), site.settings, ignore) as opened:
        assert opened.arch == "sm_90a"
        assert compiled_for(opened, "sm_90").arch == "sm_90"
        for other in ("sm_100a", "A100"):
            with pytest.raises(ToolError, match=f"arch {other}: sim:H200 stands for H200"):
                compiled_for(opened, other)


def test_a_device_that_stays_open_takes_each_call_s_own_target(
    site: WorkSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def remember(request: CheckRequest, opened: OpenedDevice, _: object) -> None:
        del request
        asked.append(opened.arch)

    monkeypatch.setattr("kopt.server.work.stages.check", remember)
    for arch in (OTHER, "", "sm_90a"):
        perform(work_for(CheckWork, arch), site)
    assert asked == [OTHER, "sm_100a", "sm_90a"]


def test_a_gpu_refuses_another_target_than_its_own() -> None:
    gpu = NamedGpu()
    opened = OpenedDevice(gpu, gpu, gpu.facts.arch)
    assert compiled_for(opened, gpu.facts.arch) is opened
    assert compiled_for(opened, "") is opened
    with pytest.raises(ToolError, match=f'arch {OTHER}: .*leave arch out, or use device "sim"'):
        compiled_for(opened, OTHER)
