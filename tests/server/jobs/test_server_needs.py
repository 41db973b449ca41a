"""Jobs that a server cannot do are left for one that can."""

from dataclasses import replace
from pathlib import Path

import pytest

from kopt.config.settings import Settings
from kopt.server.jobs import server_needs
from kopt.server.jobs.job_host import JobHost
from kopt.server.jobs.job_store import JobStore
from kopt.server.jobs.records import JobNeeds, JobRequest
from kopt.server.jobs.server_needs import ServerOffer, needs_of
from kopt.server.work.requests import CheckWork, CompileWork, StepWork, Work
from support.job_works import QUICK

pytestmark = pytest.mark.anyio

OWN = CompileWork(kernel="my_own_n8", source="x")
ON_SECOND_GPU = CheckWork(kernel="any", source="x", device="cuda:1")


def request(work: Work, needs: JobNeeds) -> JobRequest:
    return JobRequest(id="job-1", work=work, caller="me", created_us=0, needs=needs)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_needs, "gpu_devices", lambda: (Path("/dev/nvidia0"),))


@pytest.mark.parametrize(
    ("work", "needs_problems"), [(QUICK, False), (OWN, True), (StepWork(run_id="run-1"), True)]
)
def test_only_a_kernel_of_the_user_needs_the_users_problems(
    work: Work, needs_problems: bool, settings: Settings, tmp_path: Path
) -> None:
    needs = needs_of(work, replace(settings, problems=tmp_path))
    assert needs.problems == (str(tmp_path.resolve()) if needs_problems else None)


@pytest.mark.usefixtures("gpus")
def test_what_a_server_lacks_is_said_as_its_command(tmp_path: Path) -> None:
    folder = str(tmp_path / "my problems")
    asked = request(ON_SECOND_GPU, JobNeeds(problems=folder, device="cuda:1"))
    assert ServerOffer(Path(folder)).lacking_for(asked) is None
    assert ServerOffer(Path(folder), ("cuda:0", "cuda:1")).lacking_for(asked) is None
    assert ServerOffer(Path(folder), ("cuda:0",)).lacking_for(asked) == (
        "kopt serve --device cuda:1"
    )
    assert ServerOffer(None).lacking_for(asked) == "kopt serve --problems '.../my problems'"


def test_a_job_of_a_gpu_is_left_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_needs, "gpu_devices", lambda: ())
    asked = request(QUICK, JobNeeds(device="cuda:0"))
    assert ServerOffer(None).lacking_for(asked) == "kopt serve where there is a GPU"


def test_a_job_of_another_machine_is_left_for_a_server_that_offers_it(settings: Settings) -> None:
    device = "ssh://box/cuda:0"
    work = CheckWork(kernel="any", source="x", device=device)
    needs = needs_of(work, replace(settings, problems=None))
    assert needs.device == device
    asked = request(work, needs)
    assert ServerOffer(None, (device,)).lacking_for(asked) is None
    for offer in (ServerOffer(None), ServerOffer(None, ("cuda:0",))):
        assert offer.lacking_for(asked) == f"kopt serve --device {device}"


async def test_a_job_is_left_for_a_server_that_can_do_it(
    settings: Settings, tmp_path: Path
) -> None:
    problems = tmp_path / "problems"
    problems.mkdir()
    can = JobHost(replace(settings, problems=problems))
    job_id = await can.submit(OWN, "me")
    await can.close()
    cannot = JobHost(settings)
    await cannot.start()
    view = await cannot.wait(job_id, 0.5)
    assert (view.state, view.holder) == ("queued", None)
    assert view.needed_server == "kopt serve --problems .../problems"
    assert cannot.runner_pids == []
    assert JobStore(settings.jobs_folder).orphans() == [job_id]
    await cannot.close()
    again = JobHost(replace(settings, problems=problems))
    assert (await again.view(job_id)).needed_server is None
    view = await again.wait(job_id, 60.0)
    assert view.state == "failed"  # that server has it now, and finds no problem in the folder
    await again.close()
