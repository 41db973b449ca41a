"""A read-only server: it inspects, and nothing that another server left is run by it."""

from pathlib import Path

import pytest

from kopt.server.jobs.jobs import WatchedJobs
from support.job_works import KERNEL, QUICK, REFERENCE, job_settings
from support.scripted_jobs import ScriptedJobs
from support.stdio_process import StdioProcess
from support.tool_client import ERAS, connected, facts_of, serve_options, text_of


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ERAS)
async def test_result_of_another_servers_job_is_shown(mode: str, tmp_path: Path) -> None:
    jobs = ScriptedJobs()
    job_id = await jobs.submit(QUICK, "another server")
    async with connected(
        serve_options(tmp_path, read_only=True), WatchedJobs(jobs), mode
    ) as client:
        reply = await client.call_tool("job_wait", {"job_id": job_id})
    assert facts_of(reply)["status"] == "compile_error"


@pytest.mark.anyio
@pytest.mark.parametrize("mode", ERAS)
async def test_running_job_is_reported_after_the_wait(mode: str, tmp_path: Path) -> None:
    jobs = ScriptedJobs()
    jobs.go.clear()
    job_id = await jobs.submit(QUICK, "another server")
    async with connected(
        serve_options(tmp_path, read_only=True), WatchedJobs(jobs), mode
    ) as client:
        reply = await client.call_tool("job_wait", {"job_id": job_id, "wait_s": 0.5})
        unknown = await client.call_tool("job_wait", {"job_id": "job-1"})
    assert facts_of(reply)["status"] == "running"
    assert "there is no job" in text_of(unknown)


@pytest.mark.anyio
async def test_no_task_and_no_prompt_is_offered(tmp_path: Path) -> None:
    options = serve_options(tmp_path, read_only=True)
    async with connected(options, WatchedJobs(ScriptedJobs())) as client:
        assert (await client.list_prompts()).prompts == []
        assert not (client.server_capabilities.extensions or {})


@pytest.mark.slow  # a server process
def test_job_that_was_left_behind_is_not_run(tmp_path: Path, shared_home: Path) -> None:
    home = job_settings(tmp_path / "home", shared_home).home
    with StdioProcess(home) as server:
        server.greet()
        begun = server.call(
            "check_correctness",
            kernel=KERNEL,
            source=REFERENCE,
            device="sim",
            level="full",  # seconds of work: it cannot have ended when the server is killed
            wait_s=0,
        )
        server.process.kill()
        server.process.wait()
    with StdioProcess(home, "--read-only") as looking:
        looking.greet()
        waited = looking.call("job_wait", job_id=begun["job_id"], wait_s=3)
        assert waited["status"] in ("queued", "running")
        assert len(looking.tree()) == 1
