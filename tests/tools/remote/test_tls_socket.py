"""TLS for a thread that reads while another writes."""

import socket
import ssl
import threading
from pathlib import Path

import pytest

from kopt.tools.remote.byte_streams import streams_of
from kopt.tools.remote.tls_socket import TlsSocket
from support.certificates import write_certificate

BOUND_S = 60.0
LARGE = bytes(range(256)) * (4 << 12)
"""More than sockets hold on the way."""


def _pair(folder: Path, name: str = "localhost") -> tuple[TlsSocket, TlsSocket]:
    """Return both ends of an encrypted connection; the client wants the server to be `name`."""
    certificate = write_certificate(folder)
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(certificate)
    left, right = socket.socketpair()
    for end in (left, right):
        end.settimeout(BOUND_S)
    servers: list[TlsSocket] = []

    def serve() -> None:
        try:
            servers.append(TlsSocket(right, served, None))
        except OSError:
            right.close()

    accepting = threading.Thread(target=serve)
    accepting.start()
    try:
        client = TlsSocket(left, ssl.create_default_context(cafile=certificate), name)
    except BaseException:
        left.close()
        raise
    finally:
        accepting.join(BOUND_S)
    return client, servers[0]


def test_both_ends_send_much_at_once_and_neither_waits_for_ever(tmp_path: Path) -> None:
    ends = _pair(tmp_path)
    read: list[bytes] = []

    def send(end: TlsSocket) -> None:
        end.sendall(LARGE)

    def receive(end: TlsSocket) -> None:
        source, _ = streams_of(end)
        read.append(source.read(len(LARGE)))

    threads = [threading.Thread(target=do, args=(end,)) for end in ends for do in (send, receive)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(BOUND_S)
    for end in ends:
        end.close()
    assert read == [LARGE, LARGE]


def test_streams_carry_what_is_written(tmp_path: Path) -> None:
    client, server = _pair(tmp_path)
    (_, target), (source, _) = streams_of(client), streams_of(server)
    target.write(b"two words")
    target.flush()
    assert (source.read(3), source.read(6)) == (b"two", b" words")
    client.shutdown(socket.SHUT_RDWR)
    assert source.read() == b""
    client.close()
    server.close()


def test_a_server_of_another_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ssl.SSLCertVerificationError):
        _pair(tmp_path, "elsewhere.example")
