"""How a Messages API can fail to answer: what `fake_messages.py` does instead of a turn."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from support.messages_wire import Turn, error_document, event, reply, stream_events

_ERROR_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


_STREAM = "text/event-stream"


@dataclass(frozen=True)
class Refused:
    """An HTTP status and no message."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    words: str = "scripted failure"

    @property
    def document(self) -> bytes:
        """The body."""
        kind = _ERROR_KINDS.get(self.status, "api_error")
        return json.dumps(error_document(kind, self.words)).encode()


Break = Literal["cut", "ended", "error", "garbled", "no_stop", "no_usage"]


@dataclass(frozen=True)
class BrokenStream:
    """A reply that goes wrong after its first `after` events."""

    how: Break
    """The connection breaks; the body ends; an error event comes; an event that is no JSON; the
    message ends without saying why; it never says what it takes."""
    turn: Turn = field(default_factory=lambda: Turn("I begin to answer, at some length."))
    after: int = 4
    error: str = "overloaded_error"

    @property
    def is_cut(self) -> bool:
        """Whether the connection breaks before the end of the body."""
        return self.how == "cut"

    def events(self, model: str, number: int) -> list[bytes]:
        """Return the events that are sent."""
        message = reply(self.turn, model, number)
        if self.how == "no_usage":
            message["usage"] = {}
        events = list(stream_events(message))
        if self.how == "no_usage":
            return events
        if self.how == "no_stop":
            return [*events[:-2], events[-1]]
        last = {
            "error": event(error_document(self.error, "scripted failure")),
            "garbled": b'event: content_block_delta\ndata: {"type": "content_bl\n\n',
        }
        return events[: self.after] + [last[self.how]] * (self.how in last)


@dataclass(frozen=True)
class Raw:
    """A success with these bytes as its stream."""

    body: bytes
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": _STREAM})


@dataclass(frozen=True)
class Silence:
    """A connection that is taken and never answered."""


@dataclass(frozen=True)
class SignsOfLife:
    """A reply that begins and then goes on for ever without a word: pings alone."""


@dataclass(frozen=True)
class Page:
    """A page, as a proxy sends it, with the status of a success."""

    body: bytes = b"<html>Please log in.</html>"
    headers: Mapping[str, str] = field(default_factory=lambda: {"content-type": "text/html"})


Fault = Refused | BrokenStream | Raw | Silence | SignsOfLife | Page
