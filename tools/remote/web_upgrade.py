"""How a connection over HTTP becomes one of frames: a request to upgrade, and 101 as its answer.

So it passes proxies that pass WebSockets, and a proxy may be the one that speaks TLS.
"""

import json
from collections.abc import Iterator

import h11

from kopt.config.errors import SetupError
from kopt.config.plain_text import plain

from .byte_streams import ByteSocket

PROTOCOL = "kopt-frames"
"""The value of `Upgrade`."""
CODE_HEADER = "kopt-code"
"""The header with the digest of the caller's code (`code_bundle.py`)."""
_MOST_BYTES = 16 * 1024
"""A request or an answer that is longer is refused."""

_HUNG_UP = "it hung up without a word: it has too many callers, or is no kopt gpu serve"


def http_events(connection: ByteSocket, machine: h11.Connection) -> Iterator[object]:
    """Yield what the other side says, without taking a byte of what follows it.

    Raises:
        OSError: The connection broke.
        h11.RemoteProtocolError: It is no HTTP.
    """
    for _ in range(_MOST_BYTES):
        while (event := machine.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
            yield event
        machine.receive_data(connection.recv(1))


def upgraded(connection: ByteSocket, target: str, headers: dict[str, str]) -> None:
    """Ask for frames and return once the other side has agreed.

    Args:
        connection: Just made.
        target: What is asked for, `/cuda:0`.
        headers: `host`, `authorization` and so on.

    Raises:
        SetupError: It refuses; the message has its words.
        OSError: The connection broke.
    """
    machine = h11.Connection(h11.CLIENT)
    wanted = {"connection": "upgrade", "upgrade": PROTOCOL, **headers}
    request = h11.Request(method="GET", target=target, headers=list(wanted.items()))
    parts = (machine.send(request), machine.send(h11.EndOfMessage()))
    connection.sendall(b"".join(part for part in parts if part))
    status, body = 0, b""
    try:
        for event in http_events(connection, machine):
            if isinstance(event, h11.InformationalResponse) and event.status_code == 101:
                return
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += event.data
            elif isinstance(event, h11.EndOfMessage | h11.ConnectionClosed):
                break
    except h11.RemoteProtocolError as error:
        if machine.trailing_data == (b"", True):
            raise SetupError(_HUNG_UP) from error
        raise SetupError(f"what answers there speaks no HTTP ({error})") from error
    raise SetupError(_refusal(status, body))


def _refusal(status: int, body: bytes) -> str:
    """Return why a server says no: kopt's words, or what its status means."""
    try:
        said: object = json.loads(body)["error"]["message"]
    except (ValueError, KeyError, TypeError):
        said = None
    if isinstance(said, str):
        return plain(said, but="")[:500]
    return f"what answers there is no resident evaluator of kopt (HTTP status {status})"
