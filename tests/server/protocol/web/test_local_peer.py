"""A server without tokens serves its own user's processes, as told by the kernel."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest
from anyio import to_thread

from kopt.server.protocol.web.local_peer import find_peer, process_of
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
    peer = find_peer(client.getsockname()[:2], server.getsockname()[:2])
    assert peer is not None
    assert (peer.uid, peer.is_own) == (os.geteuid(), True)
    assert peer.inode == os.fstat(client.fileno()).st_ino
    assert process_of(peer.inode) == os.getpid()


def test_an_end_that_hung_up_is_nobody_s(pair: Pair) -> None:
    """Else a request could be sent and its sender be gone before anyone looks."""
    client, server = pair
    ends = client.getsockname()[:2], server.getsockname()[:2]
    client.close()
    peer = find_peer(*ends)
    assert peer is not None
    assert not peer.is_own


def test_of_a_connection_that_is_not_there_nothing_is_said() -> None:
    assert find_peer(("127.0.0.1", 1), ("127.0.0.1", 2)) is None
    assert process_of(1) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
@pytest.mark.anyio
@pytest.mark.parametrize(("uid", "status"), [(0, "200"), (NOBODY, "403")])
async def test_another_user_of_the_machine_is_refused(uid: int, status: str) -> None:
    headers = [f"{name}={value}" for name, value in PING_HEADERS.items()]
    async with answering() as server:
        words = [str(uid), str(server.port), PING.decode(), *headers]
        assert await _asked(*words) == status


async def _asked(*words: str) -> str:
    def ask() -> str:
        command = [sys.executable, "-I", "-c", ASK, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.strip()

    return await to_thread.run_sync(ask)
