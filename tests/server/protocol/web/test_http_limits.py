"""The bounds of an HTTP server: size, time, haste and breadth, each refused in its own words."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client, MCPError
from mcp.server import MCPServer

from kopt.server.protocol.web.listen_address import HttpOptions
from kopt.server.protocol.web.request_limits import HttpLimits
from support.http_asking import PING, PING_HEADERS, answering

pytestmark = pytest.mark.anyio
SMALL = HttpLimits(body_bytes=1000)


async def test_a_body_that_says_it_is_too_large_is_refused_unread() -> None:
    async with answering(limits=SMALL) as server:
        answer = await server.http.post("/mcp", content=b"x" * 1001, headers=PING_HEADERS)
    assert answer.status_code == 413
    assert "less source" in answer.json()["error"]["message"]


async def test_a_body_of_unknown_length_is_refused_where_it_becomes_too_large() -> None:
    async with answering(limits=SMALL) as server, _connection(server.port) as (reader, writer):
        head = _request_head(server.port, length=0)
        writer.write(head.replace(b"Content-Length: 0", b"Transfer-Encoding: chunked"))
        writer.write(b"3e9\r\n" + b"x" * 1001)
        assert b"413" in await reader.readline()


async def test_a_body_just_within_the_limit_is_read() -> None:
    padded = PING + b" " * (SMALL.body_bytes - len(PING))
    async with answering(limits=SMALL) as server:
        answer = await server.http.post("/mcp", content=padded, headers=PING_HEADERS)
    assert answer.status_code == 200


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_client_is_told_that_its_source_is_too_large(mode: str) -> None:
    server = MCPServer("takes source")
    server.add_tool(_length, name="length", structured_output=False)
    async with (
        answering(server, limits=HttpLimits(body_bytes=20_000)) as here,
        Client(here.url, mode=mode) as client,
    ):
        with pytest.raises(MCPError, match="larger than"):
            await client.call_tool("length", {"source": "x" * 30_000})
        assert not (await client.call_tool("length", {"source": "x"})).is_error


async def _length(source: str) -> str:
    return str(len(source))


async def test_a_body_that_does_not_come_is_not_waited_for() -> None:
    async with (
        answering(limits=HttpLimits(body_s=0.2)) as server,
        _connection(server.port) as (reader, writer),
    ):
        writer.write(_request_head(server.port, length=100) + b"{")
        assert b"408" in await reader.readline()
        await reader.read()  # returns once the server has closed the connection


@pytest.mark.parametrize(("size", "status"), [(15_000, 200), (17_000, 400), (60_000, 400)])
async def test_headers_are_bounded_though_they_arrive_in_one_piece(size: int, status: int) -> None:
    async with answering() as server:
        answer = await server.ping({"X-Padding": "x" * size})
    assert answer.status_code == status


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HTTP/1.1\r\nHost: localh"])
async def test_headers_that_do_not_come_are_not_waited_for(sent: bytes) -> None:
    async with (
        answering(limits=HttpLimits(header_s=0.2)) as server,
        _connection(server.port) as (reader, writer),
    ):
        writer.write(sent)
        assert await reader.read() == b""


async def test_dripping_headers_win_no_time() -> None:
    async with (
        answering(limits=HttpLimits(header_s=0.3)) as server,
        _connection(server.port) as (reader, writer),
    ):
        ended = asyncio.create_task(reader.read())
        writer.write(b"POST /mcp HTTP/1.1\r\n")
        while not ended.done():  # bounded by answering()
            writer.write(b"X: y\r\n")
            await asyncio.wait([ended], timeout=0.05)


@pytest.mark.slow
async def test_after_a_reply_the_next_headers_have_their_own_limit() -> None:
    async with (
        answering(limits=HttpLimits(header_s=1.5)) as server,
        _connection(server.port) as (reader, writer),
    ):
        writer.write(_request_head(server.port, length=len(PING)) + PING)
        assert b'"result":{}' in await reader.readuntil(b"\r\n0\r\n\r\n")
        writer.write(b"POST /mcp")
        assert await reader.read() == b""


async def test_haste_is_answered_with_the_time_to_wait() -> None:
    async with answering(limits=HttpLimits(requests_per_s=0.01, requests_at_once=3)) as server:
        answers = [await server.ping() for _ in range(4)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert 1 <= int(answers[-1].headers["retry-after"]) <= 100
    assert "try again in" in answers[-1].json()["error"]["message"]


async def test_one_token_s_haste_is_not_another_s(tmp_path: Path) -> None:
    tokens = [f"{name}-0123456789abcdefghijklmnopqrstuv" for name in ("hasty", "calm")]
    path = tmp_path / "tokens"
    path.touch(0o600)
    path.write_text("\n".join(tokens))
    limits = HttpLimits(requests_per_s=0.01, requests_at_once=1)
    async with answering(options=HttpOptions(port=0, token_file=path), limits=limits) as server:
        codes = [
            (await server.ping({"Authorization": f"Bearer {token}"})).status_code
            for token in (tokens[0], tokens[0], tokens[1])
        ]
    assert codes == [200, 429, 200]


async def test_requests_beyond_the_open_ones_are_refused_until_one_ends() -> None:
    server = MCPServer("waits")
    running, release = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        running.set()
        await release.wait()
        return "done"

    server.add_tool(wait, name="wait", structured_output=False)
    async with (
        answering(server, limits=HttpLimits(open_requests=1)) as here,
        Client(here.url) as client,
    ):
        call = asyncio.create_task(client.call_tool("wait", {}))
        await running.wait()
        refused = await here.ping()
        release.set()
        await call
        assert (await here.ping()).status_code == 200
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "1"
    assert "job_wait" in refused.json()["error"]["message"]


async def test_connections_beyond_the_limit_are_turned_away() -> None:
    async with (
        answering(limits=HttpLimits(connections=2)) as server,
        _connection(server.port),
        _connection(server.port),
    ):
        assert (await server.http.get("/healthz")).status_code == 503
    async with answering(limits=HttpLimits(connections=2)) as server:
        assert (await server.http.get("/healthz")).status_code == 200


@asynccontextmanager
async def _connection(
    port: int,
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


def _request_head(port: int, length: int) -> bytes:
    headers = {**PING_HEADERS, "Host": f"127.0.0.1:{port}", "Content-Length": str(length)}
    lines = ["POST /mcp HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join([*lines, "", ""]).encode()
