"""The first line of a connection to a resident evaluator, and its answer; then frames, or the end.

Both are JSON on one line.
"""

import socket
import struct
from typing import Literal, NamedTuple

from pydantic import Field, ValidationError

from kopt.kernels.record import Record

ANSWER_S = 10.0
"""Longest wait for the answer of an evaluator, which does nothing else first."""
_LONGEST_BYTES = 1 << 16
_CREDENTIALS = struct.Struct("3i")


class Wish(Record):
    """What a caller wants."""

    kind: Literal["serve", "status", "stop", "end"]
    """To be served by frames; to be told of the evaluator; that it ends after its last caller; that
    it ends now."""
    caller: str = ""
    """The caller's process in words, shown to others who wait for it."""


class CallerStatus(Record):
    """One caller of an evaluator."""

    caller: str
    state: Literal["idle", "waiting", "on the GPU"]


class EvaluatorStatus(Record):
    """A resident evaluator at this moment."""

    device: str
    pid: int
    since: str
    """When it started, UTC."""
    idle_s: float | None
    """How long it stays without a caller, in seconds; None: until it is stopped."""
    is_stopping: bool
    callers: tuple[CallerStatus, ...]
    turns: int
    """Calls and timing sessions that have used the GPU."""
    busy_share: float = Field(ge=0)
    """The measured share of its life so far in which some caller had the GPU."""
    wait_p50_s: float | None = None
    """Median wait for the GPU over the last 1,000 turns, measured; None before the first."""
    wait_p95_s: float | None = None


class Greeting(Record):
    """The evaluator's answer."""

    pid: int
    status: EvaluatorStatus | None = None


class SocketPeer(NamedTuple):
    """The process that listens, or has connected, at the other end of a socket of this machine."""

    pid: int
    user: int


def peer_of(connection: socket.socket) -> SocketPeer:
    """Return who is at the other end, as the kernel knows it.

    Raises:
        OSError: The connection broke.
    """
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid, user, _ = _CREDENTIALS.unpack(raw)
    return SocketPeer(pid, user)


def send_line(connection: socket.socket, record: Record) -> None:
    """Send one record.

    Raises:
        OSError: The other side is gone.
    """
    connection.sendall(record.model_dump_json().encode() + b"\n")


def receive_line(connection: socket.socket) -> bytes:
    """Return the next line without its end; what came before the end if the other side hangs up.

    Nothing behind the line is taken: frames may follow.

    Raises:
        OSError: The connection broke, or nothing came in the socket's time limit.
    """
    line = b""
    while len(line) < _LONGEST_BYTES and (byte := connection.recv(1)) not in (b"", b"\n"):
        line += byte
    return line


def greet(connection: socket.socket, wish: Wish) -> Greeting | None:
    """Tell an evaluator what is wanted and return its answer; None if it is about to end.

    Raises:
        TimeoutError: Nothing came within `ANSWER_S`.
    """
    connection.settimeout(ANSWER_S)
    try:
        send_line(connection, wish)
        return Greeting.model_validate_json(receive_line(connection))
    except TimeoutError:
        raise
    except (OSError, ValidationError):
        return None
