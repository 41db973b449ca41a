"""A server without tokens serves its own user's processes, as told by the kernel."""

import asyncio
import errno
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from anyio import to_thread
from mcp.server import MCPServer
from starlette.types import Message, Receive, Scope, Send

from kopt.server.protocol.web import local_peer
from kopt.server.protocol.web.http_app import local_callers
from kopt.server.protocol.web.local_peer import names_peers, peer_of, process_of
from kopt.server.protocol.web.request_limits import Checked, HttpLimits
from support.http_asking import PING, PING_HEADERS, answering

Pair = tuple[socket.socket, socket.socket]
NOBODY = 65534
ASK = """
import encodings.idna, http.client, os, sys  # all of it, before files cannot be read any more
uid, port = int(sys.argv[1]), int(sys.argv[2])
if uid: os.setgroups([]); os.setgid(uid); os.setuid(uid)
connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
headers = dict(pair.split("=", 1) for pair in sys.argv[4:])
connection.request("POST", "/mcp", sys.argv[3], headers)
print(connection.getresponse().status)
"""
CALL_AND_RESET = """
import encodings.idna, os, socket, struct, sys
uid, port = int(sys.argv[1]), int(sys.argv[2])
if uid: os.setgroups([]); os.setgid(uid); os.setuid(uid)
for _ in range(60):
    connection = socket.create_connection(("127.0.0.1", port))
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    try: connection.sendall(sys.argv[3].encode())
    except OSError: pass  # refused already
    connection.close()
print("done")
"""
HOLD = """
import encodings.idna, os, socket, sys
uid, port, count = map(int, sys.argv[1:4])
if uid: os.setgroups([]); os.setgid(uid); os.setuid(uid)
held = [socket.create_connection(("127.0.0.1", port)) for _ in range(count)]
print("held", flush=True)
sys.stdin.read()
"""
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture(params=["127.0.0.1", "::1"])
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Return both ends of a loopback connection, the client's first."""
    family = socket.AF_INET6 if request.param == "::1" else socket.AF_INET
    with socket.create_server((request.param, 0), family=family) as listener:
        client = socket.create_connection(listener.getsockname()[:2])
        server, _ = listener.accept()
        with client, server:
            yield client, server


def test_the_other_end_is_known_by_its_user_and_process(pair: Pair) -> None:
    client, server = pair
    peer = peer_of(server)
    assert peer is not None
    assert (peer.uid, peer.is_own) == (os.geteuid(), True)
    assert peer.inode == os.fstat(client.fileno()).st_ino
    assert process_of(peer.inode) == os.getpid()


def test_an_end_that_hung_up_is_nobody_s(pair: Pair) -> None:
    """Else a request could be sent and its sender be gone before anyone looks."""
    client, server = pair
    client.close()
    peer = peer_of(server)
    assert peer is None or not peer.is_own


def test_an_end_that_reset_the_connection_is_unknown(pair: Pair) -> None:
    client, server = pair
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.sendall(b"read all the same")
    client.close()
    assert peer_of(server) is None


def test_the_same_ends_of_another_connection_say_nothing(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is accepted late may have been reset, and its port be somebody else's by then."""
    _, server = pair
    other = os.stat(os.devnull)

    def of_another(_: int) -> os.stat_result:
        return other

    monkeypatch.setattr(os, "fstat", of_another)
    assert peer_of(server) is None


def test_without_the_kernel_s_tables_nobody_is_known(
    pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str) -> str:
        raise OSError(errno.EMFILE, "Too many open files", path)

    monkeypatch.setattr(local_peer, "_text", refuse)
    assert peer_of(pair[1]) is None
    assert not names_peers("127.0.0.1")


def test_of_a_socket_that_is_not_there_no_process_is_named() -> None:
    assert process_of(1) is None


@pytest.mark.anyio
@pytest.mark.parametrize("extra", [{}, {"client": None}, {"state": {}}, {"state": {"x": 1}}])
async def test_a_request_of_which_nothing_is_known_is_refused(extra: dict[str, Any]) -> None:
    sent: list[Message] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        raise AssertionError("it was let in")

    async def receive() -> Message:
        raise AssertionError("it was read")

    async def send(message: Message) -> None:
        sent.append(message)

    ends = {"client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}
    scope: dict[str, Any] = {"type": "http", "headers": [], **ends, **extra}
    await Checked(app, local_callers())(scope, receive, send)
    assert sent[0]["status"] == 403


@as_root
@pytest.mark.anyio
async def test_another_user_who_resets_the_connection_calls_nothing() -> None:
    """A reset takes the sender out of the kernel's tables, while its bytes are still read."""
    made: list[None] = []
    server = MCPServer("counts")

    async def count() -> str:
        made.append(None)
        return "counted"

    server.add_tool(count, name="count", structured_output=False)
    body = '{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "count"}}'
    async with answering(server) as here:
        lines = {**PING_HEADERS, "Host": "127.0.0.1", "Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        request = f"POST /mcp HTTP/1.1\r\n{head}\r\n{body}"
        assert await _run(CALL_AND_RESET, str(NOBODY), str(here.port), request) == "done"
        assert (await here.ping()).status_code == 200  # after everything that came before
    assert made == []


@as_root
@pytest.mark.anyio
async def test_idle_connections_of_another_user_take_no_place() -> None:
    async with answering(limits=HttpLimits(connections=8)) as here:
        words = [sys.executable, "-I", "-c", HOLD, str(NOBODY), str(here.port), "60"]
        pipe = asyncio.subprocess.PIPE
        holder = await asyncio.create_subprocess_exec(*words, stdin=pipe, stdout=pipe)
        assert holder.stdout is not None
        assert await holder.stdout.readline() == b"held\n"
        assert (await here.ping()).status_code == 200
        await holder.communicate(b"")  # which closes its stdin


@as_root
@pytest.mark.anyio
@pytest.mark.parametrize(("uid", "status"), [(0, "200"), (NOBODY, "403")])
async def test_another_user_of_the_machine_is_refused(uid: int, status: str) -> None:
    headers = [f"{name}={value}" for name, value in PING_HEADERS.items()]
    async with answering() as server:
        words = [str(uid), str(server.port), PING.decode(), *headers]
        assert await _run(ASK, *words) == status


async def _run(program: str, *words: str) -> str:
    def ask() -> str:
        command = [sys.executable, "-I", "-c", program, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()

    return await to_thread.run_sync(ask)
