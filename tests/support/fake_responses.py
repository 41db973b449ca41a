"""A loopback stand-in for the Responses API, which Codex asks; a script plays the model."""

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Body = dict[str, Any]


@dataclass(frozen=True)
class RefusedResponse:
    """An HTTP status and an error in place of a reply."""

    status: int
    kind: str
    words: str


ResponsesScript = Callable[[Body], str | RefusedResponse]
"""Returns the text that the model says, or how the service refuses."""
USAGE = {"input_tokens": 120, "cached": 20, "output_tokens": 9}


class FakeResponses:
    """`POST /v1/responses` on a free port of the loopback, from `with` to its end."""

    def __init__(self, script: ResponsesScript) -> None:
        """Play `script`."""
        self.requests: list[Body] = []
        self.script = script
        self._lock = threading.Lock()  # for the list: every connection has a thread
        self._server = _ResponsesServer(self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    @property
    def url(self) -> str:
        """The base address for a provider of Codex."""
        return f"http://127.0.0.1:{self._server.server_port}/v1"

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

    def answer(self, body: Body) -> str | RefusedResponse:
        """Return what answers a request."""
        with self._lock:
            self.requests.append(body)
        return self.script(body)


class _ResponsesServer(ThreadingHTTPServer):
    daemon_threads = True  # a client may keep its connection open

    def __init__(self, fake: FakeResponses) -> None:
        super().__init__(("127.0.0.1", 0), _ResponsesHandler)
        self.fake = fake


class _ResponsesHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        assert isinstance(self.server, _ResponsesServer)
        answer = self.server.fake.answer(body)
        if isinstance(answer, RefusedResponse):
            error = {"error": {"type": answer.kind, "message": answer.words}}
            return self._send(answer.status, "application/json", json.dumps(error))
        told = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in _events(answer))
        return self._send(200, "text/event-stream", told)

    def do_GET(self) -> None:
        self._send(404, "application/json", "{}")

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: stderr belongs to the tests."""


def _events(text: str) -> list[Body]:
    content = [{"type": "output_text", "text": text}]
    message = {"type": "message", "role": "assistant", "id": "msg_1", "content": content}
    usage = {
        "input_tokens": USAGE["input_tokens"],
        "input_tokens_details": {"cached_tokens": USAGE["cached"]},
        "output_tokens": USAGE["output_tokens"],
        "output_tokens_details": {"reasoning_tokens": 3},
        "total_tokens": USAGE["input_tokens"] + USAGE["output_tokens"],
    }
    return [
        {"type": "response.created", "response": {"id": "resp_1"}},
        {"type": "response.output_item.done", "item": message},
        {"type": "response.completed", "response": {"id": "resp_1", "usage": usage}},
    ]
