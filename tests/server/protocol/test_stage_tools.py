"""What the tools of the stages make of their arguments, and how long they wait."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.types import CallToolResult, Implementation

from kopt.server.jobs.records import Progress
from kopt.server.protocol.app import build_server
from kopt.server.work.requests import (
    BenchWork,
    CheckWork,
    CompileWork,
    ProfileWork,
    StepWork,
    SubmittedCandidate,
    Work,
)
from support.scripted_jobs import ScriptedJobs
from support.tool_client import (
    ERAS,
    KERNEL,
    connected,
    facts_of,
    serve_options,
    standing,
    standing_server,
    text_of,
)

pytestmark = pytest.mark.anyio

SOURCE = "/* kopt: 1 */"
GOOD = {"kernel": KERNEL, "source": SOURCE}


async def work_of(tool: str, arguments: dict[str, Any], **options: Any) -> Work:
    """Return the one work that a call makes."""
    server, jobs = standing_server(**options)
    async with Client(server) as client:
        facts_of(await client.call_tool(tool, arguments))
    (work,) = jobs.works
    return work


async def test_defaults_are_those_of_the_command_line() -> None:
    works = [
        await work_of(tool, GOOD)
        for tool in ("compile", "check_correctness", "benchmark", "profile")
    ]
    assert works == [
        CompileWork(kernel=KERNEL, source=SOURCE),
        CheckWork(kernel=KERNEL, source=SOURCE, device="auto", level="quick", seeds=(1, 2, 3)),
        BenchWork(kernel=KERNEL, source=SOURCE, device="auto"),
        ProfileWork(kernel=KERNEL, source=SOURCE, device="auto", counters=True),
    ]


async def test_every_argument_arrives() -> None:
    tune = {"tune": {"BLOCK": 128}}
    compiled = {"arch": ["sm_90a", "sm_100a", "sm_90a"]}
    checked = {"device": "sim", "level": "full", "seeds": [7, 7, 0]}
    assert await work_of("compile", GOOD | tune | compiled) == CompileWork(
        kernel=KERNEL, source=SOURCE, tune={"BLOCK": 128}, arch=("sm_90a", "sm_100a")
    )
    assert await work_of("check_correctness", GOOD | tune | checked) == CheckWork(
        kernel=KERNEL,
        source=SOURCE,
        tune={"BLOCK": 128},
        device="sim",
        level="full",
        seeds=(7, 7, 0),
    )
    assert await work_of("benchmark", GOOD | {"device": "cuda:3"}) == BenchWork(
        kernel=KERNEL, source=SOURCE, device="cuda:3"
    )
    assert await work_of("benchmark", GOOD | {"arch": "sm_90a"}) == BenchWork(
        kernel=KERNEL, source=SOURCE, arch="sm_90a"
    )
    assert await work_of("beam_step", {"kernel": KERNEL, "arch": "h 100"}) == StepWork(
        kernel=KERNEL, arch="sm_90a"
    )
    assert await work_of("profile", GOOD | {"counters": False}) == ProfileWork(
        kernel=KERNEL, source=SOURCE, counters=False
    )


async def test_path_is_read_when_the_call_comes(tmp_path: Path) -> None:
    (tmp_path / "mine.cu").write_text(SOURCE, "utf-8")
    work = await work_of(
        "compile", {"kernel": KERNEL, "path": "mine.cu"}, workspaces=(tmp_path.resolve(),)
    )
    assert work == CompileWork(kernel=KERNEL, source=SOURCE, path="mine.cu")


async def test_step_takes_candidates_of_both_kinds(tmp_path: Path) -> None:
    (tmp_path / "mine.cu").write_text(SOURCE, "utf-8")
    run = tmp_path / "runs" / "run-20260101-000000-000"
    run.mkdir(parents=True)
    (run / "run.sqlite").touch()
    candidates = [
        {"source": "a", "hypothesis": "why", "family": "vectorization", "parents": [3, 1]},
        {"path": "mine.cu", "tune": {"BLOCK": 64}},
    ]
    work = await work_of(
        "beam_step",
        {"run_id": "run-20260101-000000-000", "candidates": candidates, "device": "sim"},
        home=tmp_path,
        workspaces=(tmp_path.resolve(),),
    )
    assert work == StepWork(
        run_id="run-20260101-000000-000",
        device="sim",
        candidates=(
            SubmittedCandidate(
                source="a", hypothesis="why", family="vectorization", parents=(3, 1)
            ),
            SubmittedCandidate(source=SOURCE, path="mine.cu", tune={"BLOCK": 64}),
        ),
    )


async def test_step_without_candidates_leaves_them_to_kopt() -> None:
    assert await work_of("beam_step", {"kernel": KERNEL}) == StepWork(kernel=KERNEL)


async def test_candidates_that_a_client_sends_as_text_are_read() -> None:
    candidates = json.dumps([{"source": "a"}])
    work = await work_of("beam_step", {"kernel": KERNEL, "candidates": candidates})
    assert work == StepWork(kernel=KERNEL, candidates=(SubmittedCandidate(source="a"),))


@pytest.mark.parametrize("text", ['{"k": 1}', "[1, 2]", "null", "true", '"x"', "12", "\r\n\t x\0"])
@pytest.mark.parametrize("mode", ERAS)
async def test_source_that_looks_like_json_arrives_as_it_is(text: str, mode: str) -> None:
    server, jobs = standing_server()
    async with Client(server, mode=mode) as client:
        await client.call_tool("compile", {"kernel": KERNEL, "source": text})
    assert jobs.works == [CompileWork(kernel=KERNEL, source=text)]


@pytest.mark.parametrize(
    ("device", "meant"), [("auto", "cuda:1"), ("cuda:2", "cuda:2"), ("sim", "sim")]
)
async def test_auto_means_the_first_device_of_the_server(device: str, meant: str) -> None:
    arguments = {**GOOD, "device": device}
    work = await work_of("benchmark", arguments, devices=("cuda:1", "cuda:2"))
    assert work == BenchWork(kernel=KERNEL, source=SOURCE, device=meant)


@pytest.mark.parametrize("mode", ERAS)
async def test_text_and_structure_of_a_reply_say_the_same(mode: str) -> None:
    async with standing(mode) as client:
        reply = await client.call_tool("compile", GOOD)
    facts = facts_of(reply)
    assert facts["status"] == "compile_error"
    assert list(facts)[-1] == "next"
    assert all(name in text_of(reply) for name in facts)


@pytest.mark.parametrize("mode", ERAS)
async def test_call_that_takes_longer_hands_out_a_job(mode: str) -> None:
    server, jobs = standing_server()
    jobs.go.clear()
    async with Client(server, mode=mode) as client:
        begun = facts_of(await client.call_tool("compile", {**GOOD, "wait_s": 0}))
        assert begun["status"] == "running"
        assert "job_wait" in begun["next"]
        again = await client.call_tool("job_wait", {"job_id": begun["job_id"], "wait_s": 0})
        assert facts_of(again)["status"] == "running"
        jobs.go.set()
        done = await client.call_tool("job_wait", {"job_id": begun["job_id"]})
    assert facts_of(done)["status"] == "compile_error"


@pytest.mark.parametrize("mode", ERAS)
async def test_job_wait_returns_as_soon_as_the_job_is_over(mode: str) -> None:
    server, jobs = standing_server()
    jobs.go.clear()
    async with Client(server, mode=mode) as client:
        begun = facts_of(await client.call_tool("compile", {**GOOD, "wait_s": 0}))
        waiting = asyncio.create_task(client.call_tool("job_wait", {"job_id": begun["job_id"]}))
        await until(lambda: jobs.waiting == 1)
        jobs.go.set()
        async with asyncio.timeout(20):  # far below wait_s
            assert facts_of(await waiting)["status"] == "compile_error"


@pytest.mark.parametrize("mode", ERAS)
async def test_cancelled_job_says_so_and_stays_so(mode: str) -> None:
    server, jobs = standing_server()
    jobs.go.clear()
    async with Client(server, mode=mode) as client:
        begun = facts_of(await client.call_tool("compile", {**GOOD, "wait_s": 0}))
        job = {"job_id": begun["job_id"]}
        assert facts_of(await client.call_tool("job_cancel", job))["status"] == "cancelled"
        assert facts_of(await client.call_tool("job_wait", job))["status"] == "cancelled"


@pytest.mark.parametrize("mode", ERAS)
async def test_progress_reaches_the_client_that_waits(mode: str, tmp_path: Path) -> None:
    jobs = ScriptedJobs()
    jobs.progress = tuple(Progress(done=n, total=3, message=f"step {n}") for n in (1, 2, 3))
    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with connected(serve_options(tmp_path), jobs, mode) as client:
        await client.call_tool("compile", GOOD, progress_callback=hear)
    first = "job-20260101-000000-00000000: step 1"
    assert heard == [(1, 3, first), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_job_outlives_the_call_and_the_client_that_began_it(tmp_path: Path) -> None:
    # In memory a call of this era ends without a word, as where a connection is lost.
    jobs = ScriptedJobs()
    jobs.go.clear()
    options = serve_options(tmp_path)
    async with connected(options, jobs) as client:
        call = asyncio.create_task(client.call_tool("compile", GOOD))
        await until(lambda: jobs.waiting == 1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await until(lambda: jobs.waiting == 0)
    jobs.go.set()
    async with connected(options, jobs) as another:
        reply = await another.call_tool("job_wait", {"job_id": "job-20260101-000000-00000000"})
    assert jobs.cancelled == set()
    assert facts_of(reply)["status"] == "compile_error"


@pytest.mark.parametrize("tool", ["job_wait", "job_cancel"])
@pytest.mark.parametrize("job_id", ["job-20260101-000000-ffffffff", "../../etc/passwd", "x\0y"])
async def test_unknown_job_is_refused(tool: str, job_id: str) -> None:
    async with standing() as client:
        reply = await client.call_tool(tool, {"job_id": job_id})
    assert reply.is_error
    assert "there is no job" in text_of(reply)


@pytest.mark.slow  # eight servers
@pytest.mark.parametrize("mode", ERAS)
async def test_eight_clients_at_once_get_each_their_own_result(mode: str, tmp_path: Path) -> None:
    jobs = ScriptedJobs()
    jobs.go.clear()

    async def compile_one(number: int) -> CallToolResult:
        async with connected(serve_options(tmp_path), jobs, mode) as client:
            return await client.call_tool("compile", {**GOOD, "source": f"candidate {number}"})

    calls = [asyncio.create_task(compile_one(number)) for number in range(8)]
    await until(lambda: jobs.waiting == 8)
    jobs.go.set()
    replies = [await call for call in calls]
    told = [f"candidate {number}" in text_of(reply) for number, reply in enumerate(replies)]
    assert told == [True] * 8
    assert len(set(map(text_of, replies))) == 8


@pytest.mark.parametrize("mode", ERAS)
async def test_callers_are_told_apart_by_what_clients_call_themselves(
    mode: str, tmp_path: Path
) -> None:
    jobs = ScriptedJobs()
    server = build_server(serve_options(tmp_path), jobs)
    for name in ("one", "another", "x" * 500):
        info = Implementation(name=name, version="1")
        async with Client(server, mode=mode, client_info=info) as client:
            await client.call_tool("compile", GOOD)
    assert jobs.callers == ["local one", "local another", "local " + "x" * 60]


async def until(condition: Any) -> None:
    """Give way to other tasks until `condition()` holds."""
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0)
