"""A loopback stand-in for the Messages API in which a script plays the model.

A script is a function of the request, or of the calls in it with their results, so a client that
sends a request again gets the same answer. Requests are kept for the test to look at. The wire
format is in `messages_wire.py`, what can go wrong in `messages_faults.py`.
"""

import json
import socket
import threading
from collections.abc import Callable, Iterable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from support.messages_faults import BrokenStream, Fault, Page, Raw, Refused, SignsOfLife, Silence
from support.messages_wire import (
    Exchange,
    Turn,
    complaint,
    error_document,
    event,
    exchanges,
    reply,
    stream_events,
)

Body = dict[str, Any]
Script = Callable[[tuple[Exchange, ...]], Turn]
"""Returns the next turn of the model in a conversation with tools."""
BodyScript = Callable[[Body], Turn | Fault]
"""Returns the next turn of the model, or how it fails to come."""


def in_conversation(script: Script) -> BodyScript:
    """Return `script` for what clients send: they ask on the side too, for a title for example."""
    return lambda body: script(exchanges(body["messages"])) if body.get("tools") else Turn("ok")


class FakeMessages:
    """`POST /v1/messages` on a free port of the loopback, from `with` to its end."""

    def __init__(self, script: BodyScript, faults: Iterable[Fault] = ()) -> None:
        """Play `script`, after answering the first requests with `faults`."""
        self.requests: list[Body] = []
        """The bodies of all requests for a message, refused ones too."""
        self.headers: list[Mapping[str, str]] = []
        """Their headers, by lower-case name."""
        self.lookup_status = 404
        """What the question for models gets: as from a gateway that knows none."""
        self.ended = threading.Event()
        self._script = script
        self._faults = list(faults)
        self._lock = threading.Lock()  # for the lists: every connection has a thread
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
        self.ended.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, body: Body, headers: Mapping[str, str]) -> tuple[int, Turn | Fault]:
        """Return the number of a request and what answers it."""
        with self._lock:
            self.requests.append(body)
            self.headers.append(headers)
            number = len(self.requests)
            fault = self._faults.pop(0) if self._faults else None
        if fault is not None:
            return number, fault
        wrong = complaint(body)
        if wrong is not None:
            return number, Refused(400, words=wrong)
        try:
            return number, self._script(body)
        except Exception as mistake:  # the outermost frame; clients do not repeat what got a 400
            return number, Refused(400, words=f"the script fails: {mistake!r}")


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
            return self._send(200, json.dumps({"input_tokens": 1000}).encode())
        if self.path.partition("?")[0] != "/v1/messages":
            return self._not_found()
        headers = {name.lower(): value for name, value in self.headers.items()}
        number, answer = self._fake.answer(body, headers)
        match answer:
            case Turn() if body.get("stream"):
                self._stream(list(stream_events(reply(answer, body["model"], number))))
            case Turn():
                self._send(200, json.dumps(reply(answer, body["model"], number)).encode())
            case Refused():
                self._send(answer.status, answer.document, answer.headers)
            case BrokenStream():
                self._stream(answer.events(body["model"], number), answer.is_cut)
            case Page() | Raw():
                self._send(200, answer.body, answer.headers)
            case Silence():
                self.close_connection = True
                self._fake.ended.wait()
            case SignsOfLife():
                self._live_on(list(stream_events(reply(Turn(), body["model"], number))))

    def do_GET(self) -> None:
        if self.path.partition("?")[0] != "/v1/models":
            return self._not_found()
        status = self._fake.lookup_status
        document = b'{"data": [], "has_more": false}' if status == 200 else Refused(status).document
        return self._send(status, document)

    def do_HEAD(self) -> None:
        self._send(404, b"")

    def _not_found(self) -> None:
        self._send(404, json.dumps(error_document("not_found_error", "not found")).encode())

    def _send(self, status: int, data: bytes, more: Mapping[str, str] | None = None) -> None:
        headers = {"content-type": "application/json", **(more or {})}
        self._head(status, {**headers, "content-length": str(len(data))})
        self.wfile.write(data)

    def _stream(self, events: Iterable[bytes], is_cut: bool = False) -> None:
        self._begin_stream()
        for data in events:
            self._chunk(data)
        if is_cut:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)
        else:
            self._chunk(b"")  # an empty chunk ends the body

    def _live_on(self, events: list[bytes]) -> None:
        self._begin_stream()
        self._chunk(events[0])
        self.close_connection = True
        try:
            while not self._fake.ended.wait(0.02):
                self._chunk(event({"type": "ping"}))
        except OSError:
            return  # the client has gone away

    def _begin_stream(self) -> None:
        content_type = "text/event-stream; charset=utf-8"
        self._head(200, {"content-type": content_type, "transfer-encoding": "chunked"})

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("request-id", f"req_{len(self._fake.requests):04}")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: stderr belongs to the tests."""
