"""A package index with its files on the loopback, which fails as it is told to."""

import json
import threading
from collections import deque
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal, cast

Fault = Literal["cut"] | int
"""What becomes of one request for a file: half of the answer, or a status without one."""


@dataclass
class PackageServer:
    """What is served, and what was asked for."""

    url: str = ""
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    """Content by filename; each is a file of every project."""
    form: Literal["json", "html", "nonsense"] = "json"
    page: tuple[str, bytes] | None = None
    """Content type and content of every project page, in place of what `form` says."""
    has_ranges: bool = True
    index_status: int = 200
    faults: deque[Fault] = field(default_factory=deque[Fault])
    """For the next requests for files, in order."""
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Path and `Range` of each request."""
    authorizations: list[str] = field(default_factory=list[str])

    @property
    def index(self) -> str:
        """The address that PIP_INDEX_URL would have."""
        return f"{self.url}/simple"

    @property
    def file_requests(self) -> list[str]:
        """`Range` of each request for a file."""
        return [span for path, span in self.asked if path.startswith("/files/")]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        served = cast("_Server", self.server).served
        served.asked.append((self.path, self.headers.get("Range", "")))
        served.authorizations.append(self.headers.get("Authorization", ""))
        if self.path.startswith("/simple/"):
            self._answer_index(served)
        else:
            self._answer_file(served, served.files[self.path.removeprefix("/files/")])

    def log_message(self, format: str, *args: object) -> None:
        """Write nothing."""

    def _answer_index(self, served: PackageServer) -> None:
        if served.page is not None:
            kind, body = served.page
        elif served.form == "json":
            files = [
                {"filename": name, "url": f"{served.url}/files/{name}"} for name in served.files
            ]
            body = json.dumps({"files": files}).encode()
            kind = "application/vnd.pypi.simple.v1+json"
        elif served.form == "html":
            links = [f'<a href="../../files/{name}#sha256=0">{name}</a>' for name in served.files]
            body, kind = "<br>".join(links).encode(), "text/html"
        else:
            body, kind = b"welcome to this network", "text/plain"
        self._send(served.index_status, body, {"Content-Type": kind})

    def _answer_file(self, served: PackageServer, data: bytes) -> None:
        fault = served.faults.popleft() if served.faults else None
        if isinstance(fault, int):
            self._send(fault, b"", {})
            return
        status, headers, body = 200, dict[str, str](), data
        span = self.headers.get("Range")
        if span and served.has_ranges:
            first, _, last = span.removeprefix("bytes=").partition("-")
            if int(first) >= len(data):
                self._send(416, b"", {})
                return
            body = data[int(first) : int(last) + 1 if last else None]
            end = int(first) + len(body) - 1
            status, headers = 206, {"Content-Range": f"bytes {first}-{end}/{len(data)}"}
        self._send(status, body, headers, sent=len(body) // 2 if fault == "cut" else None)

    def _send(
        self, status: int, body: bytes, headers: dict[str, str], sent: int | None = None
    ) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:sent])
        self.close_connection = sent is not None


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    served: PackageServer

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients that leave early are what is tested."""


@contextmanager
def package_server() -> Generator[PackageServer]:
    """Serve on a free port of the loopback."""
    with _Server(("127.0.0.1", 0), _Handler) as server:
        server.served = PackageServer(url=f"http://127.0.0.1:{server.server_port}")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.served
        finally:
            server.shutdown()
            thread.join()
