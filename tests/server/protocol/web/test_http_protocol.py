"""The tools over HTTP, in both eras of the protocol: streams, hung-up calls, many clients."""

import asyncio
import os
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server import MCPServer

from kopt.config.settings import Settings
from kopt.server.jobs.records import Progress
from kopt.server.protocol.app import build_server
from kopt.server.protocol.serve_options import ServeOptions
from kopt.server.protocol.web.listen_address import HttpOptions
from support.http_asking import answering
from support.scripted_jobs import ScriptedJobs

pytestmark = pytest.mark.anyio
KERNEL = "silu_and_mul_b8xh14336"
FIRST_JOB = "job-20260101-000000-00000000"
Mode = str
both_eras = pytest.mark.parametrize("mode", ["auto", "legacy"])


class WatchedJobs(ScriptedJobs):
    """Scripted jobs that say when a call begins to wait and when it has left."""

    def __init__(self) -> None:
        """Let jobs end at once; clear `go` to hold them."""
        super().__init__()
        self.waited_for = asyncio.Event()
        self.left = asyncio.Event()

    async def wait(self, job_id: str, wait_s: float, watch: Any = None) -> Any:
        """Wait as the twin does."""
        self.waited_for.set()
        try:
            return await super().wait(job_id, wait_s, watch)
        finally:
            self.left.set()


def _server(home: Path, jobs: ScriptedJobs, read_only: bool = False) -> MCPServer[Any]:
    return build_server(ServeOptions(Settings(home=home), read_only=read_only), jobs)


@both_eras
async def test_every_tool_is_listed_and_one_answers(tmp_path: Path, mode: Mode) -> None:
    async with (
        answering(_server(tmp_path, ScriptedJobs())) as here,
        Client(here.url, mode=mode) as client,
    ):
        names = {tool.name for tool in (await client.list_tools()).tools}
        reply = await client.call_tool("compile", {"kernel": KERNEL, "source": "mine"})
    assert {"compile", "benchmark", "job_wait"} <= names
    assert not reply.is_error
    assert "mine" in str(reply.structured_content)


@both_eras
async def test_progress_comes_while_the_call_is_open(tmp_path: Path, mode: Mode) -> None:
    jobs = ScriptedJobs()
    jobs.progress = tuple(Progress(done=float(n), message=f"part {n}") for n in (1, 2, 3))
    jobs.go.clear()
    seen: list[tuple[float, str | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, message))
        if progress == 3:  # the job ends only after the last was seen
            jobs.go.set()

    async with answering(_server(tmp_path, jobs)) as here, Client(here.url, mode=mode) as client:
        arguments = {"kernel": KERNEL, "source": "mine"}
        reply = await client.call_tool("compile", arguments, progress_callback=on_progress)
    assert seen == [(1, f"{FIRST_JOB}: part 1"), (2, "part 2"), (3, "part 3")]
    assert not reply.is_error


@both_eras
async def test_a_dropped_connection_leaves_the_job_going(tmp_path: Path, mode: Mode) -> None:
    jobs = WatchedJobs()
    jobs.go.clear()
    async with answering(_server(tmp_path, jobs)) as here:
        async with Client(here.url, mode=mode) as client:
            arguments = {"kernel": KERNEL, "source": "mine"}
            call = asyncio.create_task(client.call_tool("compile", arguments))
            await jobs.waited_for.wait()
            call.cancel()
            await asyncio.wait([call])
        await jobs.left.wait()  # the server holds nothing for a client that is gone
        assert jobs.cancelled == set()
        jobs.go.set()
        async with Client(here.url, mode=mode) as later:
            reply = await later.call_tool("job_wait", {"job_id": FIRST_JOB})
    assert "mine" in str(reply.structured_content)


@pytest.mark.parametrize(("before", "after"), [("auto", "legacy"), ("legacy", "auto")])
async def test_a_new_client_goes_on_where_another_left(
    tmp_path: Path, before: Mode, after: Mode
) -> None:
    jobs = ScriptedJobs()
    jobs.go.clear()
    async with answering(_server(tmp_path, jobs)) as here:
        async with Client(here.url, mode=before) as client:
            arguments = {"kernel": KERNEL, "source": "mine", "wait_s": 0}
            running = await client.call_tool("compile", arguments)
        assert running.structured_content is not None
        assert running.structured_content["status"] == "running"
        jobs.go.set()
        async with Client(here.url, mode=after) as client:
            job = {"job_id": running.structured_content["job_id"]}
            reply = await client.call_tool("job_wait", job)
    assert "mine" in str(reply.structured_content)


@both_eras
async def test_a_client_outlives_its_server(tmp_path: Path, mode: Mode) -> None:
    """There is no session to lose: the server may be started again under its clients."""
    jobs = ScriptedJobs()
    async with answering(_server(tmp_path, jobs)) as first:
        port = first.port
        client = Client(first.url, mode=mode)
        await client.__aenter__()
        await client.list_tools()
    async with answering(_server(tmp_path, jobs), HttpOptions(port=port)):
        try:
            reply = await client.call_tool("compile", {"kernel": KERNEL, "source": "mine"})
        finally:
            await client.__aexit__(None, None, None)
    assert not reply.is_error


@pytest.mark.slow  # eight clients
async def test_eight_clients_at_once_get_each_their_own_answer(tmp_path: Path) -> None:
    jobs = ScriptedJobs()
    jobs.go.clear()

    async def ask(url: str, number: int) -> str:
        async with Client(url, mode="legacy" if number % 2 else "auto") as client:
            arguments = {"kernel": KERNEL, "source": f"source {number}"}
            call = asyncio.create_task(client.call_tool("compile", arguments))
            while len(jobs.works) < 8:  # all are open at the same time; bounded by answering()
                await client.list_tools()
            jobs.go.set()
            return str((await call).structured_content)

    async with answering(_server(tmp_path, jobs)) as here:
        replies = await asyncio.gather(*(ask(here.url, number) for number in range(8)))
    assert [f"source {number}" in reply for number, reply in enumerate(replies)] == [True] * 8


async def test_jobs_are_queued_under_the_token_of_their_caller(tmp_path: Path) -> None:
    tokens = [f"{name}-0123456789abcdefghijklmnopqrstuv" for name in ("one", "two")]
    path = tmp_path / "tokens"
    path.touch(0o600)
    path.write_text("\n".join(tokens))
    jobs = ScriptedJobs()
    options = HttpOptions(port=0, token_file=path)
    async with answering(_server(tmp_path, jobs), options) as here:
        for token in tokens:
            headers = {"Authorization": f"Bearer {token}"}
            async with (
                httpx2.AsyncClient(headers=headers) as http,
                Client(streamable_http_client(here.url, http_client=http)) as client,
            ):
                await client.call_tool("compile", {"kernel": KERNEL, "source": "mine"})
    assert jobs.callers == ["token-1", "token-2"]


async def test_without_tokens_each_process_is_a_caller_of_its_own(tmp_path: Path) -> None:
    jobs = ScriptedJobs()
    async with answering(_server(tmp_path, jobs)) as here, Client(here.url) as client:
        await client.call_tool("compile", {"kernel": KERNEL, "source": "mine"})
    assert jobs.callers == [f"local-{os.getpid()}"]


async def test_a_process_that_goes_by_many_names_is_one_caller(tmp_path: Path) -> None:
    jobs = ScriptedJobs()
    async with answering(_server(tmp_path, jobs)) as here:
        for name in ("ua-1", "ua-2"):
            async with (
                httpx2.AsyncClient(headers={"User-Agent": name}) as http,
                Client(streamable_http_client(here.url, http_client=http)) as client,
            ):
                await client.call_tool("compile", {"kernel": KERNEL, "source": name})
    assert jobs.callers == [f"local-{os.getpid()}"] * 2


@both_eras
async def test_a_read_only_server_compiles_nothing(tmp_path: Path, mode: Mode) -> None:
    jobs = ScriptedJobs()
    async with (
        answering(_server(tmp_path, jobs, read_only=True)) as here,
        Client(here.url, mode=mode) as client,
    ):
        names = {tool.name for tool in (await client.list_tools()).tools}
        reply = await client.call_tool("compile", {"kernel": KERNEL, "source": "mine"})
    assert "compile" not in names
    assert "list_kernels" in names
    assert reply.is_error
    assert jobs.works == []
