"""The architecture that a tool call names: what sim estimates for, and what a GPU refuses."""

from collections.abc import Generator
from pathlib import Path

import pytest

from kopt.config.callbacks import ignore
from kopt.config.errors import ToolError
from kopt.kernels.bench_result import BenchResult
from kopt.kernels.profile_result import ProfileResult
from kopt.server.opened_device import OpenedDevice, compiled_for
from kopt.server.protocol.replies.reply import job_reply
from kopt.server.work.perform import perform
from kopt.server.work.requests import BenchWork, CheckWork, ProfileWork, Work
from kopt.server.work.work_site import WarmDevices, WorkSite
from kopt.tools.check.request import CheckRequest
from support.job_views import done_job
from support.job_works import KERNEL, REFERENCE, job_settings
from support.named_gpu import NamedGpu
from support.sound_replies import sound

OTHER = "sm_80"
"""No target of a GPU that tests name, nor the default."""


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
