"""The streams of a socket: what is short is had at once, what is long comes whole."""

import socket
import threading
from collections.abc import Iterator
from typing import BinaryIO

import pytest

from kopt.tools.remote.byte_streams import streams_of

BOUND_S = 60.0
LONG = bytes(range(256)) * (4 << 12)
"""Many times what a socket holds on the way."""


@pytest.fixture(params=[None, BOUND_S], ids=["without a time limit", "with one"])
def ends(request: pytest.FixtureRequest) -> Iterator[tuple[socket.socket, socket.socket]]:
    """Return two connected sockets, of which the second may have a time limit."""
    left, right = socket.socketpair()
    with left, right:
        right.settimeout(request.param)
        yield left, right


def _read(source: BinaryIO, count: int) -> bytes:
    """Return what is read, however long it is waited for; nothing where it never comes."""
    found: list[bytes] = []
    reading = threading.Thread(target=lambda: found.append(source.read(count)), daemon=True)
    reading.start()
    reading.join(BOUND_S)
    return b"".join(found)


def test_nobody_waits_for_more_than_was_sent_and_wanted(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    left, right = ends
    source, _ = streams_of(right)
    for text in (b"a", b"short" * 9, b"x" * 70_000, b"end"):
        left.sendall(text)
        assert _read(source, len(text)) == text


def test_what_is_long_comes_whole_and_what_follows_it_stays(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    left, right = ends
    source, _ = streams_of(right)
    sending = threading.Thread(target=left.sendall, args=(b"head" + LONG + b"next",))
    sending.start()
    assert _read(source, 4) == b"head"
    assert _read(source, len(LONG)) == LONG
    assert _read(source, 4) == b"next"
    sending.join(BOUND_S)


def test_an_end_in_the_middle_gives_what_there_was(
    ends: tuple[socket.socket, socket.socket],
) -> None:
    left, right = ends
    source, _ = streams_of(right)
    left.sendall(LONG[:100_000])
    left.shutdown(socket.SHUT_WR)
    assert _read(source, len(LONG)) == LONG[:100_000]
