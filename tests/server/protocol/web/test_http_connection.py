"""A refusal reaches a client that is still sending: its connection is not reset under it."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kopt.server.protocol.web import http_connection
from kopt.server.protocol.web.listen_address import HttpOptions
from kopt.server.protocol.web.local_peer import Peer
from kopt.server.protocol.web.request_limits import HttpLimits
from kopt.server.protocol.web.token_file import write_token
from support.http_asking import answering

pytestmark = pytest.mark.anyio
USUAL = HttpLimits()
HEAD = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n"
COMPLETE = HEAD + b"\r\n"
MISDIRECTED = COMPLETE.replace(b"localhost", b"evil.example")


@dataclass(frozen=True)
class Refused:
    """A client that has read a refusal and that the server has nothing more to say."""

    status: int
    connection: socket.socket

    async def send(self, size: int) -> None:
        """Send more of the body; the second piece fails if the first was answered by a reset."""
        for _ in range(size // 1000):
            await asyncio.get_running_loop().sock_sendall(self.connection, b"x" * 1000)


@asynccontextmanager
async def _refused(port: int, head: bytes = MISDIRECTED) -> AsyncGenerator[Refused]:
    loop = asyncio.get_running_loop()
    with socket.socket() as connection:
        connection.setblocking(False)
        await loop.sock_connect(connection, ("127.0.0.1", port))
        await loop.sock_sendall(connection, head)
        reply = b""
        while piece := await loop.sock_recv(connection, 4096):
            reply += piece
        yield Refused(int(reply.split()[1]), connection)


@pytest.mark.parametrize(
    ("head", "limits", "status"),
    [
        (MISDIRECTED, USUAL, 421),
        (HEAD + b"Origin: https://evil.example\r\n\r\n", USUAL, 403),
        (HEAD + b"X-Padding: " + b"x" * 17_000 + b"\r\n\r\n", USUAL, 400),
        (HEAD + b"X-Endless: " + b"x" * 40_000, USUAL, 400),
        (b"no HTTP\r\n\r\n", USUAL, 400),
        (COMPLETE, replace(USUAL, body_bytes=999_999), 413),
        (COMPLETE, replace(USUAL, body_s=0.05), 408),
        (COMPLETE, replace(USUAL, requests_at_once=0), 429),
        (COMPLETE, replace(USUAL, open_requests=0), 429),
        (COMPLETE, replace(USUAL, connections=1), 503),
    ],
    ids=[
        "host",
        "origin",
        "headers",
        "endless",
        "syntax",
        "size",
        "time",
        "haste",
        "breadth",
        "connections",
    ],
)
async def test_a_refusal_leaves_the_client_time_to_send_its_body(
    head: bytes, limits: HttpLimits, status: int
) -> None:
    async with answering(limits=limits) as server, _refused(server.port, head) as client:
        await client.send(999_000)
    assert client.status == status


async def test_a_missing_token_is_told_to_a_client_that_is_still_sending(tmp_path: Path) -> None:
    path = tmp_path / "token"
    write_token(path)
    async with (
        answering(options=HttpOptions(port=0, token_file=path)) as server,
        _refused(server.port, COMPLETE) as client,
    ):
        await client.send(999_000)
    assert client.status == 401


async def test_a_connection_that_is_not_kept_is_told_why_while_it_sends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def somebody_else(_: socket.socket) -> Peer:
        return Peer(uid=1001, inode=7)

    monkeypatch.setattr(http_connection, "peer_of", somebody_else)
    async with answering() as server, _refused(server.port, COMPLETE) as client:
        await client.send(999_000)
    assert client.status == 403


@pytest.mark.parametrize(
    "limits",
    [
        replace(USUAL, linger_s=0.1, linger_bytes=10**12),
        replace(USUAL, linger_s=1000.0, linger_bytes=100_000),
    ],
    ids=["time", "bytes"],
)
async def test_who_never_stops_sending_is_cut_off(limits: HttpLimits) -> None:
    async with answering(limits=limits) as server, _refused(server.port) as client:
        with pytest.raises(ConnectionError):
            while True:  # bounded by answering()
                await client.send(100_000)


async def test_few_at_a_time_are_waited_for() -> None:
    async with (
        answering(limits=replace(USUAL, lingering=1)) as server,
        _refused(server.port) as first,
        _refused(server.port) as second,
    ):
        with pytest.raises(ConnectionError):
            await second.send(100_000)
        await first.send(100_000)


async def test_who_has_hung_up_makes_room_for_another() -> None:
    async with answering(limits=replace(USUAL, lingering=1)) as server:
        for _ in range(2):
            async with _refused(server.port) as client:
                await client.send(5_000)


async def test_none_is_waited_for_when_the_server_ends() -> None:
    async with AsyncExitStack() as clients:
        async with answering() as server:
            client = await clients.enter_async_context(_refused(server.port))
        with pytest.raises(ConnectionError):
            await client.send(100_000)
