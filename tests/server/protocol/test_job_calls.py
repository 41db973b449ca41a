"""Jobs as calls see them: listed, cancelled with their call, told by their id, over already."""

import asyncio
from pathlib import Path

import anyio
import pytest
from mcp import Client
from mcp.types import PromptReference, ResourceTemplateReference, TextResourceContents

from kopt.server.jobs.records import Progress
from kopt.server.protocol import stage_call
from support.scripted_jobs import ScriptedJobs
from support.scripted_steps import KERNEL as RUN_KERNEL
from support.scripted_steps import Steps, candidate
from support.tool_client import KERNEL, connected, facts_of, serve_options, text_of

pytestmark = pytest.mark.anyio

WORK = {"kernel": KERNEL, "source": "/* kopt: 1 */"}


async def waiting(jobs: ScriptedJobs, calls: int) -> None:
    """Return once so many calls wait for a job."""
    with anyio.fail_after(5):
        while jobs.waiting != calls:
            await asyncio.sleep(0)


@pytest.mark.parametrize("tool", ["compile", "job_wait"])
async def test_a_cancelled_call_ends_its_job(tool: str, tmp_path: Path) -> None:
    # In memory only this era tells of a cancellation; over stdio both do.
    jobs = ScriptedJobs()
    jobs.go.clear()
    async with connected(serve_options(tmp_path), jobs, "legacy") as client:
        begun = facts_of(await client.call_tool("compile", {**WORK, "wait_s": 0}))
        arguments = {"job_id": begun["job_id"]} if tool == "job_wait" else WORK
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, tool, arguments)
            await waiting(jobs, 1)
            group.cancel_scope.cancel()
        with anyio.fail_after(5):
            while not jobs.cancelled:
                await asyncio.sleep(0)


async def test_a_job_that_another_call_waits_for_goes_on(tmp_path: Path) -> None:
    jobs = ScriptedJobs()
    jobs.go.clear()
    async with connected(serve_options(tmp_path), jobs, "legacy") as client:
        replies: list[str] = []

        async def wait(until: Client) -> None:
            listed = facts_of(await until.call_tool("job_wait", {}))["jobs"]
            job = {"job_id": listed[0].split()[0]}
            replies.append(facts_of(await until.call_tool("job_wait", job))["status"])

        async with anyio.create_task_group() as kept:
            async with anyio.create_task_group() as left:
                left.start_soon(client.call_tool, "compile", WORK)
                await waiting(jobs, 1)
                kept.start_soon(wait, client)
                await waiting(jobs, 2)
                left.cancel_scope.cancel()
            await waiting(jobs, 1)
            await client.call_tool("list_kernels", {"limit": 1})  # the cancellation was told before
            jobs.go.set()
    assert jobs.cancelled == set()
    assert replies == ["compile_error"]


async def test_the_first_message_of_progress_names_the_job(tmp_path: Path) -> None:
    jobs = ScriptedJobs()
    jobs.progress = (Progress(done=1, total=3, message="one"), Progress(done=2, message="two"))
    told: list[tuple[float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        del progress
        told.append((total, message))

    async with connected(serve_options(tmp_path), jobs) as client:
        await client.call_tool("compile", WORK, progress_callback=hear)
    assert told == [(3, "job-20260101-000000-00000000: one"), (None, "two")]


async def test_jobs_are_listed_newest_first_with_the_one_to_wait_for(tmp_path: Path) -> None:
    jobs = ScriptedJobs()
    async with connected(serve_options(tmp_path), jobs) as client:
        none = facts_of(await client.call_tool("job_wait", {}))
        await client.call_tool("compile", WORK)
        jobs.go.clear()
        await client.call_tool("profile", {**WORK, "wait_s": 0})
        facts = facts_of(await client.call_tool("job_wait", {}))
        page = (await client.read_resource("kopt://jobs")).contents[0]
    assert none["jobs"] == []
    assert [row.split()[1:3] for row in facts["jobs"]] == [
        ["running", "profile"],
        ["running", "compile"],
    ]
    assert facts["jobs"][0].split()[0] in facts["next"]
    assert isinstance(page, TextResourceContents)
    assert all(row in page.text for row in facts["jobs"])


async def test_cancelling_what_is_over_is_answered_in_a_line(tmp_path: Path) -> None:
    jobs = ScriptedJobs()
    async with connected(serve_options(tmp_path), jobs) as client:
        done = facts_of(await client.call_tool("compile", WORK))
        facts = facts_of(await client.call_tool("job_cancel", {"job_id": done["job_id"]}))
    assert (facts["status"], facts["message"]) == ("done", "it was over already")
    assert set(facts) == {"status", "job_id", "message", "next"}
    assert jobs.cancelled == set()


async def test_a_bug_is_a_sentence_that_names_kopt_and_goes_to_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(stage_call, "resolved", fail)
    async with connected(serve_options(tmp_path), ScriptedJobs()) as client:
        reply = await client.call_tool("compile", WORK)
    assert reply.is_error
    assert text_of(reply).startswith("compile: kopt has a bug here")
    assert "secret detail" not in text_of(reply)
    assert "secret detail" in caplog.text


async def test_arguments_of_prompts_and_addresses_are_completed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(tmp_path)
    steps.install(monkeypatch.setattr)
    run = steps.take(candidate(5.0, "a"), kernel=RUN_KERNEL).run
    jobs = ScriptedJobs()
    async with connected(serve_options(tmp_path), jobs) as client:
        await client.call_tool("compile", WORK)

        async def values(ref: PromptReference | ResourceTemplateReference, **one: str) -> list[str]:
            (name,) = one
            found = await client.complete(ref, {"name": name, "value": one[name]})
            return list(found.completion.values)

        prompt = PromptReference(name="optimize-kernel")
        assert await values(prompt, kernel="silu_and_mul_b8") == [KERNEL]
        assert "silu_and_mul_b8xh14336" in await values(prompt, kernel="and_mul")
        assert await values(prompt, family="vec") == ["vectorization"]
        port = PromptReference(name="port-kernel")
        assert await values(port, kernel="silu_and_mul_b8") == [KERNEL]
        assert await values(port, arch="sm_9") == ["sm_90a"]
        assert set(await values(port, arch="h")) >= {"H100", "H200"}
        runs = ResourceTemplateReference(uri="kopt://runs/{run_id}")
        assert await values(runs, run_id="run-") == [run]
        result = ResourceTemplateReference(uri="kopt://jobs/{job_id}/result")
        assert await values(result, job_id="") == ["job-20260101-000000-00000000"]
        gpus = ResourceTemplateReference(uri="kopt://gpus/{name}")
        assert set(await values(gpus, name="h")) >= {"H100", "H200"}
        page = (await client.read_resource("kopt://runs")).contents[0]
    assert isinstance(page, TextResourceContents)
    assert f"- {run}: {RUN_KERNEL} on sim" in page.text
