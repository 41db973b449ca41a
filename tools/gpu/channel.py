"""The two FIFOs between kopt and a worker: whole messages, each with the worker's token.

The same code serves both ends. A frame is the token, the length of the payload (4 bytes, little
endian) and the payload, which is JSON of `messages.py`; this file does not look into it. What a
worker or a library prints goes elsewhere and is never read as a message.
"""

import os
import select
import struct
import time
from dataclasses import dataclass
from pathlib import Path

from kopt.config.pollable_event import PollableEvent

TOKEN_BYTES = 16
MESSAGE_LIMIT_BYTES = 64 << 20
_LENGTH = struct.Struct("<I")
_CHUNK_BYTES = 1 << 16
_REQUESTS, _ANSWERS = "requests", "answers"


class ChannelTimeout(Exception):
    """The deadline passed before the message was through."""


class ChannelClosed(Exception):
    """The other end is gone, or the message can no longer be answered."""


class ChannelGarbage(Exception):
    """What came is no frame of this worker's; nothing after it can be read either."""


@dataclass
class Channel:
    """One end, for one thread at a time; `close` it after its last use."""

    receiving: int
    sending: int
    token: bytes
    broken: PollableEvent | None = None
    """An event that ends every wait; set once the other end is dead."""

    def send(self, payload: bytes, deadline: float | None = None) -> None:
        """Write one message.

        Args:
            payload: At most `MESSAGE_LIMIT_BYTES`.
            deadline: On time.monotonic(), in seconds; None waits for ever.

        Raises:
            ChannelTimeout: The other end did not read it in time.
            ChannelClosed: The other end is gone.
        """
        frame = memoryview(self.token + _LENGTH.pack(len(payload)) + payload)
        while frame:
            self._wait(self.sending, select.POLLOUT, deadline)
            try:
                frame = frame[os.write(self.sending, frame[:_CHUNK_BYTES]) :]
            except BlockingIOError:  # room for less than a pipe writes in one piece
                continue
            except BrokenPipeError as error:
                raise ChannelClosed("nobody reads") from error

    def receive(self, deadline: float | None = None) -> bytes:
        """Return the payload of the next message.

        Raises:
            ChannelTimeout: It did not come in time.
            ChannelClosed: The other end is gone.
            ChannelGarbage: Something else came.
        """
        head = self._read(TOKEN_BYTES + _LENGTH.size, deadline)
        (length,) = _LENGTH.unpack_from(head, TOKEN_BYTES)
        if head[:TOKEN_BYTES] != self.token:
            raise ChannelGarbage("a message without the worker's token")
        if length > MESSAGE_LIMIT_BYTES:
            raise ChannelGarbage(f"a message of {length} bytes")
        return self._read(length, deadline)

    def close(self) -> None:
        """Close both directions; the other end sees it."""
        os.close(self.receiving)
        os.close(self.sending)

    def _read(self, size: int, deadline: float | None) -> bytes:
        received = bytearray()
        while len(received) < size:
            self._wait(self.receiving, select.POLLIN, deadline)
            try:
                chunk = os.read(self.receiving, min(_CHUNK_BYTES, size - len(received)))
            except BlockingIOError:
                continue
            if not chunk:
                raise ChannelClosed("nobody writes")
            received += chunk
        return bytes(received)

    def _wait(self, descriptor: int, event: int, deadline: float | None) -> None:
        poller = select.poll()
        poller.register(descriptor, event)
        if self.broken is not None:
            poller.register(self.broken, select.POLLIN)
        remaining_ms = None
        if deadline is not None:
            remaining_ms = max(0.0, deadline - time.monotonic()) * 1000
        ready = [found for found, _ in poller.poll(remaining_ms)]
        if not ready:
            raise ChannelTimeout("no answer in time")
        if descriptor not in ready:
            raise ChannelClosed("the other end is dead")


def open_parent_end(folder: Path, token: bytes, broken: PollableEvent) -> Channel:
    """Make both FIFOs in `folder` and return kopt's end; nothing waits for the worker."""
    for name in (_REQUESTS, _ANSWERS):
        os.mkfifo(folder / name)
    nowait = os.O_NONBLOCK | os.O_CLOEXEC
    receiving = os.open(folder / _ANSWERS, os.O_RDONLY | nowait)
    # For both directions, so that opening does not need a reader; the worker sees it close.
    sending = os.open(folder / _REQUESTS, os.O_RDWR | nowait)
    return Channel(receiving, sending, token, broken)


def open_worker_end(folder: Path, token: bytes) -> Channel:
    """Return the worker's end of the FIFOs that `open_parent_end` made."""
    receiving = os.open(folder / _REQUESTS, os.O_RDONLY | os.O_CLOEXEC)
    sending = os.open(folder / _ANSWERS, os.O_WRONLY | os.O_CLOEXEC)
    return Channel(receiving, sending, token)
