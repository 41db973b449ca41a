"""`kopt serve --http` as users run it: how it ends, what it leaves, what it never shows."""

import asyncio
import signal
import socket
from pathlib import Path

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from kopt.server.jobs.process_tree import living, session_tree
from kopt.server.protocol.web.token_file import write_token
from support.http_asking import PING, PING_HEADERS
from support.job_works import ON_SIM, SPINNING
from support.serve_process import ServeProcess

pytestmark = pytest.mark.slow  # a server process and its endings

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LIMIT_S = 400.0
"""The simulator's runtime is compiled first, on a machine that may be busy."""


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_ends_an_idle_server_with_its_number(
    tmp_path: Path, number: signal.Signals
) -> None:
    with ServeProcess(tmp_path / "home") as server:
        assert server.end(number) == (128 + number, b"")
        assert server.stderr.count("\n") == 1  # where it listens, and no traceback


def test_a_connection_that_says_nothing_does_not_hold_up_the_end(tmp_path: Path) -> None:
    with (
        ServeProcess(tmp_path / "home") as server,
        socket.create_connection(("127.0.0.1", server.port)) as silent,
        socket.create_connection(("127.0.0.1", server.port)) as stuck,
    ):
        stuck.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{")
        assert server.end(signal.SIGTERM)[0] == 143
        assert silent.recv(1) == b""


@pytest.mark.anyio
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_during_a_job_leaves_no_process_and_keeps_the_job(
    tmp_path: Path, shared_home: Path, number: signal.Signals
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (shared_home / "cache").mkdir(exist_ok=True)
    (home / "cache").symlink_to(shared_home / "cache")
    work = SPINNING.model_dump(include={"kernel", "source", "device"})
    runs = asyncio.Event()

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        if ON_SIM in (message or ""):
            runs.set()

    async with asyncio.timeout(LIMIT_S):
        with ServeProcess(home) as server:
            async with Client(server.url) as client:
                begun = await client.call_tool("check_correctness", {**work, "wait_s": 0})
                assert begun.structured_content is not None, begun
                job = {"job_id": begun.structured_content["job_id"]}
                stream = asyncio.create_task(
                    client.call_tool("job_wait", job, progress_callback=on_progress)
                )
                told = asyncio.create_task(runs.wait())
                await asyncio.wait([stream, told], return_when=asyncio.FIRST_COMPLETED)
                assert told.done(), stream.result()
                children = session_tree(server.pid)
                assert len(children) > 2  # the server, its runner, the sandbox
                ended = await asyncio.to_thread(server.end, number)
                await asyncio.wait([stream])
        assert (ended, stream.exception() is None) == ((128 + number, b""), False)
        assert living(children) == frozenset()
        assert "Traceback" not in server.stderr
        with ServeProcess(home) as server:
            async with Client(server.url) as client:
                reply = await client.call_tool("job_cancel", job)
    assert reply.structured_content is not None
    assert reply.structured_content["status"] == "cancelled"


@pytest.mark.anyio
async def test_a_token_is_in_nothing_that_others_could_read(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write_token(path)
    token = path.read_text().strip()
    with ServeProcess(tmp_path / "home", "--token-file", path) as server:
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx2.AsyncClient() as http:
            for given in (headers, {"Authorization": f"Basic {token}"}, {"X": token}):
                await http.post(server.url, content=PING, headers={**PING_HEADERS, **given})
            await http.post(server.url, content=token, headers=headers)
            await http.get(f"{server.url}/{token}", headers=headers)
        async with (
            httpx2.AsyncClient(headers=headers) as http,
            Client(streamable_http_client(server.url, http_client=http)) as client,
        ):
            assert (await client.list_tools()).tools
        secret = token.encode()
        shown = [Path(f"/proc/{server.pid}/{name}") for name in ("cmdline", "environ")]
        assert not any(secret in file.read_bytes() for file in shown)
        code, stdout = server.end(signal.SIGTERM)
        assert (code, token in server.stderr, secret in stdout) == (143, False, False)
    left = [file for file in (tmp_path / "home").rglob("*") if file.is_file()]
    assert not any(secret in file.read_bytes() for file in left)
