"""Claude behind the Messages API: the real `Model`. Its offline twin is in `recording.py`.

Every call is a stream, because long replies are not sent otherwise. Nothing is repeated here: the
client's own retries are off, and `retry.py` has the only policy. Importing this module costs a
second of CPU: import it where Claude is asked.
"""

import threading
import time
import weakref
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import anthropic
import httpx2
from anthropic.lib.streaming import MessageStream, MessageStreamManager

from kopt.config.errors import SetupError
from kopt.config.settings import ClaudeAccess
from kopt.tools.facts.wording import plain_beginning

from .anthropic_wire import cached_prefix, failure_of_call, reply_of, request_arguments
from .errors import CallFailed, Halt
from .model import ModelReply, ModelRequest
from .prompt_cache import CacheWarmup


def open_http(most_bytes: int) -> httpx2.Client:
    """Return a client that reads at most `most_bytes` of any answer."""

    def bound(response: httpx2.Response) -> None:
        encoding = response.headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise httpx2.RemoteProtocolError("the answer is compressed, which was not asked for")
        if isinstance(response.stream, httpx2.SyncByteStream):
            response.stream = _Bounded(response.stream, most_bytes)

    return anthropic.DefaultHttpxClient(
        follow_redirects=False,
        headers={"accept-encoding": "identity"},
        event_hooks={"response": [bound]},
    )


class _Bounded(httpx2.SyncByteStream):
    """The bytes of an answer, up to a limit."""

    def __init__(self, stream: httpx2.SyncByteStream, most_bytes: int) -> None:
        self._stream = stream
        self._left = most_bytes

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._stream:
            self._left -= len(piece)
            if self._left < 0:
                self.close()  # httpx does not for a body that is read at once
                raise httpx2.RemoteProtocolError("the answer is longer than any reply")
            yield piece

    def close(self) -> None:
        self._stream.close()


# The library does not check what a service sends: broken pieces end in any of the built-in ones.
_FROM_SERVICE = (
    anthropic.AnthropicError,
    httpx2.HTTPError,
    httpx2.StreamError,
    ValueError,
    TypeError,
    AttributeError,
    LookupError,
    RecursionError,
)
_CHECK_S = 10.0
_MOST_SAID, _MOST_ID = 600, 100  # characters


@dataclass(frozen=True)
class ReplyLimits:
    """How long the service may be silent, how long one reply may take, and how large it may be."""

    connect_s: float = 10.0
    silence_s: float = 300.0
    """Between two pieces of a reply: the service sends signs of life far more often."""
    reply_s: float = 3600.0
    """128,000 tokens at 35 a second; beyond that it is not going anywhere."""
    reply_bytes: int = 64 * 1024 * 1024
    """Most bytes of a stream: 128,000 tokens, each in an event of its own, are 30 MB."""


class AnthropicModel:
    """Asks Claude. Thread-safe; one for all branches of a run."""

    def __init__(self, access: ClaudeAccess, halt: Halt, limits: ReplyLimits | None = None) -> None:
        """Prepare connections; nothing is sent.

        Raises:
            SetupError: The address cannot be one.
        """
        self._limits = limits or ReplyLimits()
        self._halt = halt
        self._first_alone = CacheWarmup(halt)
        self._secrets = tuple(s for s in (access.api_key, access.auth_token) if s)
        try:
            self._client = anthropic.Anthropic(
                api_key=access.api_key,
                auth_token=access.auth_token,
                base_url=access.base_url,
                max_retries=0,
                timeout=httpx2.Timeout(self._limits.silence_s, connect=self._limits.connect_s),
                open_telemetry=False,
                http_client=open_http(self._limits.reply_bytes),
            )
        except httpx2.InvalidURL as error:
            raise SetupError("ANTHROPIC_BASE_URL is no address that can be used") from error
        self.close = weakref.finalize(self, self._client.close)
        """Closes all connections, at the latest when the model is garbage-collected."""

    def reply(self, request: ModelRequest) -> ModelReply:
        """Return Claude's answer; blocks until it is complete.

        Raises:
            CallFailed: There is none.
            Stopped: The run was stopped meanwhile; the connection is closed.
        """
        arguments = request_arguments(request, _enforced(request))
        begun_s = time.monotonic()
        with self._first_alone.turn(cached_prefix(request)) as cached:
            progress = _Progress(cached)
            stream = self._client.messages.stream(**arguments)
            try:
                reply = self._read(stream, request, progress)
            except _FROM_SERVICE as error:
                failure = failure_of_call(error, progress.began)
                raise self._told(failure) from None  # the cause may hold headers
        return reply.model_copy(update={"latency_s": time.monotonic() - begun_s})

    def check_access(self) -> None:
        """Ask the service once whether it takes the key, before anything costs.

        Says nothing where the service cannot tell: a gateway may not know the question.

        Raises:
            CallFailed: The key is refused.
        """
        try:
            self._client.models.list(limit=1, timeout=_CHECK_S)
        except anthropic.APIStatusError as error:
            if error.status_code in (401, 403):
                raise self._told(failure_of_call(error, began=False)) from None
        except (anthropic.AnthropicError, httpx2.HTTPError):
            return  # what is wrong now may be right when it matters

    def _read(
        self, manager: MessageStreamManager[None], request: ModelRequest, progress: "_Progress"
    ) -> ModelReply:
        """Return the whole reply, but for its latency."""
        is_complete = False
        with manager as stream, self._deadline(stream):
            for event in stream:
                self._halt.check()
                progress.begin()
                is_complete = is_complete or event.type == "message_stop"
            if not is_complete:
                raise httpx2.RemoteProtocolError("the stream ended before the reply did")
            message = stream.current_message_snapshot
            if message.stop_reason is None:
                raise ValueError("it does not say why it stops")
            return reply_of(message, request, stream.request_id)

    @contextmanager
    def _deadline(self, stream: MessageStream[None]) -> Generator[None]:
        """Close the stream if the block takes too long: signs of life alone are no reply."""
        timer = threading.Timer(self._limits.reply_s, stream.close)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def _told(self, failure: CallFailed) -> CallFailed:
        """Return the failure in words fit to be kept and shown, whatever the service put in them.

        It may have repeated the key, sent a book, or what a terminal obeys.
        """
        for secret in self._secrets:
            failure.message = failure.message.replace(secret, "[key]")
            failure.request_id = (failure.request_id or "").replace(secret, "[key]")
        failure.message = plain_beginning(failure.message, _MOST_SAID)
        failure.request_id = plain_beginning(failure.request_id or "", _MOST_ID) or None
        return failure


@dataclass
class _Progress:
    """Whether the service has begun to answer: from then on the call may cost."""

    cached: Callable[[], None]
    began: bool = False

    def begin(self) -> None:
        if not self.began:
            self.began = True
            self.cached()


def _enforced(request: ModelRequest) -> dict[str, Any] | None:
    """Return the answer's schema with what the service does not enforce moved into words."""
    return (
        None if request.answer_schema is None else anthropic.transform_schema(request.answer_schema)
    )
