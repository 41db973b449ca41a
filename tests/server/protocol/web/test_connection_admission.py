"""Which connections are kept: whose, and how many of whom."""

import os
import socket
from collections.abc import Iterator

import pytest
from starlette.responses import Response

from kopt.server.protocol.web import http_connection
from kopt.server.protocol.web.http_connection import Admission, Admitted
from kopt.server.protocol.web.local_peer import Peer
from kopt.server.protocol.web.request_limits import HttpLimits

LIMITS = HttpLimits(connections=8, connections_of_one=4, connections_kept=2)
OWN, ALICE, BOB = Peer(0, 7), Peer(1001, 7), Peer(1002, 7)
CLOSED = Peer(0, 0)


@pytest.fixture
def accepted() -> Iterator[socket.socket]:
    """Return a connection as a server accepts it."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        with client, server:
            yield server


@pytest.fixture
def come(accepted: socket.socket, monkeypatch: pytest.MonkeyPatch) -> "Come":
    """Return what lets connections of named peers come."""
    return Come(accepted, monkeypatch)


class Come:
    """Connections whose other end is told."""

    def __init__(self, connection: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
        """Tell of `connection` what a test says."""
        self.said = ""
        self._connection = connection
        self._monkeypatch = monkeypatch

    def __call__(self, door: Admission, peer: Peer | None) -> Admitted | int:
        """Return what became of one more connection of `peer`, or the status of its refusal."""

        def told(_: socket.socket) -> Peer | None:
            return peer

        self._monkeypatch.setattr(http_connection, "peer_of", told)
        found = door.enter(self._connection)
        if not isinstance(found, Response):
            return found
        self.said = bytes(found.body).decode()
        return found.status_code


@pytest.mark.parametrize("peer", [ALICE, CLOSED, None])
def test_without_tokens_whoever_is_not_known_as_the_own_user_is_refused(
    peer: Peer | None, come: Come
) -> None:
    door = Admission(LIMITS, serves_strangers=False)
    assert come(door, peer) == 403
    assert come(door, OWN) == Admitted(OWN, None)


def test_a_user_who_is_refused_is_told_whom_the_server_serves(come: Come) -> None:
    come(Admission(LIMITS, serves_strangers=False), ALICE)
    assert f"serves the user with the id {os.geteuid()} on this machine" in come.said


def test_a_connection_that_is_reset_before_it_is_looked_at_is_refused() -> None:
    with socket.socket() as unconnected:
        found = Admission(LIMITS, serves_strangers=True).enter(unconnected)
    assert isinstance(found, Response)
    assert found.status_code == 403


def test_with_tokens_no_user_of_the_machine_crowds_out_another(come: Come) -> None:
    door = Admission(LIMITS, serves_strangers=True)
    entries = [come(door, ALICE) for _ in range(4)]
    assert come(door, ALICE) == 503
    assert [come(door, BOB) for _ in range(3)][-1] == 503  # two are kept for the own user
    assert come(door, OWN) == Admitted(OWN, None)
    assert isinstance(entries[0], Admitted)
    door.leave(entries[0])
    assert isinstance(come(door, BOB), Admitted)
