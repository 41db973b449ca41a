"""Jobs whose files are damaged, and what lies beside them in the folder of jobs."""

import os
from pathlib import Path

import pytest

from kopt.config.errors import InfraError, ToolError
from kopt.config.settings import Settings
from kopt.server.jobs.job_host import JobHost
from kopt.server.jobs.job_store import JobStore
from kopt.server.jobs.records import JobError
from support.job_works import QUICK

pytestmark = pytest.mark.anyio

DAMAGED = [
    pytest.param(b"", id="empty"),
    pytest.param(b"[1]", id="list"),
    pytest.param(b'{"schema": "kopt.comp', id="truncated"),
    pytest.param(b'{"schema": "\xff\xfe"}', id="not UTF-8"),
    pytest.param(b"[" * 100_000, id="deep"),
    pytest.param(b'{"a":' * 100_000, id="deep objects"),
    pytest.param(b"{}", id="nothing in it"),
]


def left_job(settings: Settings) -> Path:
    """Return the folder of a job that nobody holds."""
    claim = JobStore(settings.jobs_folder).create(QUICK, "me")
    claim.release()
    return claim.files.folder


@pytest.mark.parametrize("name", ["result.json", "error.json"])
@pytest.mark.parametrize("data", DAMAGED)
async def test_a_job_whose_end_is_damaged_has_failed(
    data: bytes, name: str, host: JobHost, settings: Settings
) -> None:
    folder = left_job(settings)
    (folder / name).write_bytes(data)
    view = await host.wait(folder.name, 5.0)
    assert view.error is not None, view.state
    assert (view.state, view.error.kind) == ("failed", "machine")
    assert str(folder / name) in view.error.message
    assert host.runner_pids == []


@pytest.mark.parametrize("data", DAMAGED)
async def test_a_damaged_request_is_named_as_a_fault_of_the_machine(
    data: bytes, host: JobHost, settings: Settings
) -> None:
    folder = left_job(settings)
    (folder / "request.json").write_bytes(data)
    with pytest.raises(InfraError, match=r"request\.json is damaged: start the work again"):
        await host.view(folder.name)


async def test_a_damaged_number_of_attempts_is_none(host: JobHost, settings: Settings) -> None:
    folder = left_job(settings)
    (folder / "attempts").write_bytes(b"\xff\xfe" + b"9" * 5000)
    assert (await host.view(folder.name)).attempts == 0


def test_what_is_no_job_keeps_no_job_from_being_resumed_or_swept(settings: Settings) -> None:
    store = JobStore(settings.jobs_folder)
    old = store.create(QUICK, "me")
    old.files.write_error(JobError(kind="machine", message="no compiler"))
    old.release()
    for path in old.files.folder.iterdir():
        os.utime(path, (1.0, 1.0))
    young = left_job(settings)
    (settings.jobs_folder / "job-20200101-000000-00000000").write_bytes(b"a plain file")
    odd = settings.jobs_folder / "job-20200101-000000-00000001"
    odd.mkdir()
    (odd / "request.json").symlink_to("request.json")  # OSError, as a foreign folder is to us
    assert store.sweep() == 1
    assert not old.files.folder.exists()
    assert store.orphans() == [young.name]
    for path in (settings.jobs_folder / "job-20200101-000000-00000000", odd):
        with pytest.raises(ToolError, match="no job"):
            store.view(path.name)
