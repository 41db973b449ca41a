"""A loopback stand-in for the Messages API in which a script plays the model.

A script is a function of the calls so far with their results, so a client that sends a request
again gets the same answer. Requests are kept for the test to look at. The wire format is in
`messages_wire.py`.
"""

import json
import threading
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from support.messages_wire import Exchange, Turn, complaint, error, exchanges, reply, stream

Script = Callable[[tuple[Exchange, ...]], Turn]
"""Returns the next turn of the model."""

_ERROR_KINDS = {429: "rate_limit_error", 500: "api_error", 529: "overloaded_error"}


class FakeMessages:
    """`POST /v1/messages` on a free port of the loopback, from `with` to its end."""

    def __init__(self, script: Script, failures: Iterable[int] = ()) -> None:
        """Play `script`, after answering the first requests with the statuses `failures`."""
        self.requests: list[dict[str, Any]] = []
        """The bodies of all requests for a message, refused ones too."""
        self._script = script
        self._failures = list(failures)
        self._lock = threading.Lock()  # for the two lists: every connection has a thread
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """What a client takes as ANTHROPIC_BASE_URL."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        """Begin to serve."""
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End the server and free its port."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return the status and the document that answer one request."""
        with self._lock:
            self.requests.append(body)
            number = len(self.requests)
            failure = self._failures.pop(0) if self._failures else None
        if failure is not None:
            return failure, error(_ERROR_KINDS.get(failure, "api_error"), "scripted failure")
        wrong = complaint(body)
        if wrong is not None:
            return 400, error("invalid_request_error", wrong)
        if not body.get("tools"):  # clients ask on the side too, for a title for example
            return 200, reply(Turn("ok"), body["model"], number)
        try:
            turn = self._script(exchanges(body["messages"]))
        except Exception as fault:  # the outermost frame; clients do not repeat what got a 400
            return 400, error("invalid_request_error", f"the script fails: {fault!r}")
        return 200, reply(turn, body["model"], number)


class _Server(ThreadingHTTPServer):
    daemon_threads = True  # a client may keep its connection open

    def __init__(self, fake: FakeMessages) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.fake = fake


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def _fake(self) -> FakeMessages:
        assert isinstance(self.server, _Server)
        return self.server.fake

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.path.partition("?")[0] == "/v1/messages/count_tokens":
            return self._send(200, {"input_tokens": 1000})
        if self.path.partition("?")[0] != "/v1/messages":
            return self._send(404, error("not_found_error", "not found"))
        status, document = self._fake.answer(body)
        if status == 200 and body.get("stream"):
            return self._stream(document)
        return self._send(status, document)

    def do_GET(self) -> None:
        self._send(404, error("not_found_error", "not found"))

    def do_HEAD(self) -> None:
        self._send(404, None)

    def _send(self, status: int, document: dict[str, Any] | None) -> None:
        data = b"" if document is None else json.dumps(document).encode()
        self._head(status, "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, message: dict[str, Any]) -> None:
        self._head(200, "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in (*stream(message), b""):  # an empty chunk ends the body
            self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")

    def _head(self, status: int, content_type: str) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("request-id", f"req_{len(self._fake.requests):04}")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: stderr belongs to the tests."""
