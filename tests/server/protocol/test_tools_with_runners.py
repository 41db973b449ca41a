"""The tools over real jobs in runner processes, on the simulator: a day of a client."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult

from kopt.config.settings import Settings
from kopt.server.jobs.job_host import JobHost
from kopt.server.protocol.serve_options import ServeOptions
from kopt.tools.selftest.sample import SAMPLES
from support.job_works import KERNEL, ON_SIM, REFERENCE, SPINNING, job_settings
from support.tool_client import ERAS, connected, facts_of, text_of

pytestmark = [pytest.mark.anyio, pytest.mark.slow]  # runner processes

LIMIT_S = 240.0
"""The first job builds the simulator, on a machine that may be busy."""
GOOD = {"kernel": KERNEL, "source": REFERENCE}


@pytest.fixture
def settings(tmp_path: Path, shared_home: Path) -> Settings:
    """Return settings with jobs and runs of their own and the caches of all tests."""
    return job_settings(tmp_path / "home", shared_home)


@pytest.fixture
async def host(settings: Settings) -> AsyncGenerator[JobHost]:
    """Yield a host of jobs."""
    host = JobHost(settings)
    await host.start()
    yield host
    await host.close()


@pytest.fixture
def options(settings: Settings) -> ServeOptions:
    """Return options over the same state."""
    return ServeOptions(settings=settings, workspaces=(SAMPLES.resolve(),))


async def finished(client: Client, tool: str, **arguments: Any) -> CallToolResult:
    """Call a tool, wait for its job as a model would, and return the last reply."""
    async with asyncio.timeout(LIMIT_S):
        reply = await client.call_tool(tool, arguments)
        while not reply.is_error and facts_of(reply)["status"] in ("queued", "running"):
            job = {"job_id": facts_of(reply)["job_id"]}
            reply = await client.call_tool("job_wait", job)
    return reply


@pytest.mark.slow
@pytest.mark.parametrize("mode", ERAS)
async def test_good_candidate_goes_through_every_stage(
    mode: str, host: JobHost, options: ServeOptions
) -> None:
    async with connected(options, host, mode) as client:
        compiled = facts_of(await finished(client, "compile", **GOOD, arch=["sm_90a"]))
        assert compiled["status"] == "passed"
        checked = facts_of(await finished(client, "check_correctness", **GOOD, device="sim"))
        assert checked["status"] == "passed"
        timed = facts_of(await finished(client, "benchmark", **GOOD, device="sim"))
        assert timed["verdict"] == "estimated"
        profiled = facts_of(await finished(client, "profile", **GOOD, device="sim"))
        assert profiled["status"] == "passed"


@pytest.mark.parametrize(
    ("tool", "sample", "status"),
    [
        ("compile", "evil_syntax_error.cu", "compile_error"),
        ("compile", "evil_broken_header.cu", "plan_error"),
        ("check_correctness", "evil_gate_and_up_swapped.cu", "incorrect"),
        ("benchmark", "evil_syntax_error.cu", "compile_error"),
        ("profile", "evil_broken_header.cu", "plan_error"),
    ],
)
async def test_bad_candidate_is_a_normal_reply(
    tool: str, sample: str, status: str, host: JobHost, options: ServeOptions
) -> None:
    device = {} if tool == "compile" else {"device": "sim"}
    async with connected(options, host) as client:
        reply = await finished(client, tool, kernel=KERNEL, path=sample, **device)
    facts = facts_of(reply)
    assert facts["status"] == status
    assert list(facts)[-1] == "next"


async def test_step_begins_a_run_that_the_next_step_goes_on_with(
    host: JobHost, options: ServeOptions
) -> None:
    async with connected(options, host) as client:
        candidate = {"source": "// no header", "hypothesis": "none", "family": "vectorization"}
        arguments = {"kernel": KERNEL, "candidates": [candidate], "device": "sim"}
        begun = facts_of(await finished(client, "beam_step", **arguments))
        again = {
            "run_id": begun["run_id"],
            "candidates": [{**candidate, "source": "// none either"}],
        }
        after = facts_of(await finished(client, "beam_step", **again))
    assert [one["status"] for one in begun["candidates"]] == ["plan_error"]
    assert after["run_id"] == begun["run_id"]
    assert after["candidates"][0]["number"] == begun["candidates"][0]["number"] + 1
    assert [one["number"] for one in after["beam"]] == [0]


async def test_tune_value_that_the_header_lacks_is_an_error(
    host: JobHost, options: ServeOptions
) -> None:
    async with connected(options, host) as client:
        reply = await finished(client, "compile", **GOOD, tune={"BLOKC": 1})
    assert reply.is_error
    assert "BLOKC" in text_of(reply)


@pytest.mark.parametrize("mode", ERAS)
async def test_progress_rises_while_a_job_runs_and_cancelling_ends_it(
    mode: str, host: JobHost, options: ServeOptions
) -> None:
    heard: list[list[float]] = []
    """By call: each call's progress begins anew."""
    is_running = asyncio.Event()

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard[-1].append(progress)
        if ON_SIM in (message or ""):
            is_running.set()

    async def wait_on(client: Client, job: dict[str, Any]) -> str:
        while True:
            heard.append([])
            reply = await client.call_tool("job_wait", job, progress_callback=hear)
            status: str = facts_of(reply)["status"]
            if status not in ("queued", "running"):
                return status

    work = {"kernel": KERNEL, "source": SPINNING.source, "device": "sim"}
    async with asyncio.timeout(LIMIT_S), connected(options, host, mode) as client:
        begun = await client.call_tool("check_correctness", {**work, "wait_s": 0})
        job = {"job_id": facts_of(begun)["job_id"]}
        waiting = asyncio.create_task(wait_on(client, job))
        await is_running.wait()
        cancelled = await client.call_tool("job_cancel", job)
        assert facts_of(cancelled)["status"] == "cancelled"
        assert await waiting == "cancelled"
    assert heard == [sorted(set(told)) for told in heard]


async def test_the_same_call_again_joins_the_job_or_gets_its_result(
    host: JobHost, options: ServeOptions
) -> None:
    async with connected(options, host) as client, connected(options, host) as another:
        begun = facts_of(await client.call_tool("compile", {**GOOD, "wait_s": 0}))
        joined = facts_of(await another.call_tool("compile", GOOD))
        again = facts_of(await finished(client, "compile", **GOOD))
        other = facts_of(await finished(client, "compile", **GOOD, arch=["sm_90a"]))
        listed = facts_of(await another.call_tool("job_wait", {}))
    assert {one["job_id"] for one in (begun, joined, again)} == {begun["job_id"]}
    assert other["job_id"] != begun["job_id"]
    assert [row.split()[0] for row in listed["jobs"]] == [other["job_id"], begun["job_id"]]


async def test_client_that_comes_back_finds_its_result(
    host: JobHost, options: ServeOptions
) -> None:
    async with connected(options, host) as client:
        begun = facts_of(await client.call_tool("compile", {**GOOD, "wait_s": 0}))
    async with connected(options, host, "legacy") as another:
        reply = await finished(another, "job_wait", job_id=begun["job_id"])
    assert facts_of(reply)["status"] == "passed"


async def test_eight_clients_at_once_are_all_served(host: JobHost, options: ServeOptions) -> None:
    async def ask(number: int) -> CallToolResult:
        async with connected(options, host, ERAS[number % 2]) as client:
            source = f"/* kopt: 1\nfamily: client_{number}\n*/"
            return await finished(client, "compile", kernel=KERNEL, source=source)

    replies = await asyncio.gather(*(ask(number) for number in range(8)))
    assert [facts_of(reply)["status"] for reply in replies] == ["plan_error"] * 8
    assert [f"client_{n}" in text_of(reply) for n, reply in enumerate(replies)] == [True] * 8
