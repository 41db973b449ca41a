"""Which device a step of a run is queued for, when the call names none."""

from contextlib import closing
from pathlib import Path

import pytest

from kopt.server.work.requests import StepWork
from support.scripted_jobs import ScriptedJobs
from support.scripted_runs import new_store
from support.tool_client import connected, facts_of, serve_options, text_of

pytestmark = pytest.mark.anyio


def begun_run(home: Path, device: str) -> str:
    """Return the id of a run that began on `device`."""
    run = "run-20260101-000000-00000000"
    with closing(new_store(home, run, device=device)):
        return run


@pytest.mark.parametrize("devices", [(), ("cuda:0", "cuda:1")])
@pytest.mark.parametrize("device", ["sim", "cuda:1"])
async def test_step_of_a_run_waits_for_the_device_that_the_run_is_on(
    device: str, devices: tuple[str, ...], tmp_path: Path
) -> None:
    run = begun_run(tmp_path, device)
    jobs = ScriptedJobs()
    async with connected(serve_options(tmp_path, devices=devices), jobs) as client:
        facts_of(await client.call_tool("beam_step", {"run_id": run}))
    assert jobs.works == [StepWork(run_id=run, device=device)]


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("run-20260101-000000-00000000", "device cuda:1 is not offered"),
        ("run-20260202-000000-00000000", "no run matches"),
    ],
)
async def test_step_of_a_run_that_cannot_be_taken_here_makes_no_job(
    named: str, said: str, tmp_path: Path
) -> None:
    begun_run(tmp_path, "cuda:1")
    jobs = ScriptedJobs()
    async with connected(serve_options(tmp_path, devices=("cuda:0",)), jobs) as client:
        reply = await client.call_tool("beam_step", {"run_id": named})
    assert reply.is_error
    assert said in text_of(reply)
    assert jobs.works == []
