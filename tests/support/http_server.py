"""`kopt serve --http` in a process of its own, on a free port of the loopback."""

import http.client
import signal
import socket
import subprocess
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from support.real_clients import KOPT, environment

_START_LIMIT_S = 30.0
_END_LIMIT_S = 10.0


@dataclass(frozen=True)
class HttpServer:
    """A server that answers."""

    port: int

    @property
    def url(self) -> str:
        """The address that a client is given."""
        return f"http://127.0.0.1:{self.port}/mcp"


@contextmanager
def served(scratch: Path, *options: str) -> Generator[HttpServer]:
    """Run `kopt serve --http` with its home and its working folder in `scratch`."""
    port = _free_port()
    with (scratch / "stderr").open("w", encoding="utf-8") as stderr:
        process = subprocess.Popen(
            [KOPT, "serve", "--http", "--port", str(port), *options],
            cwd=scratch,
            env=environment(scratch / "home"),
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
        )
        try:
            _wait_until_healthy(process, port, scratch / "stderr")
            yield HttpServer(port)
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(_END_LIMIT_S)
            finally:
                process.kill()


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _wait_until_healthy(process: "subprocess.Popen[bytes]", port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_LIMIT_S
    while time.monotonic() < deadline and process.poll() is None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=1)
        with suppress(OSError):
            connection.request("GET", "/healthz")
            if connection.getresponse().status == 200:
                connection.close()
                return
        connection.close()
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.05)
    raise AssertionError(f"kopt serve --http does not answer: {log.read_text('utf-8')[-2000:]}")
