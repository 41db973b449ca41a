"""One connection to another process of kopt: calls and their answers, as frames.

It is made once and never again: what happens after its end is for `reconnecting.py`. Each thread
that calls has a lane of its own, on which the other side answers with a thread of its own.
"""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import BinaryIO, Protocol

from pydantic import ValidationError

from kopt.config.errors import InfraError, KoptError, SetupError, ToolError
from kopt.config.plain_text import plain
from kopt.tools.devices.device import Arrays
from kopt.tools.devices.gpu_time import count_gpu_time
from kopt.tools.devices.lost_timing import TimingLost

from .answers import (
    FAR_ANSWER,
    ErrorAnswer,
    FarAnswer,
    GpuTimeAnswer,
    ToldAnswer,
)
from .calls import CALL, Beat, Call
from .wire import REMEMBERED_BYTES, BrokenFrame, Frame, FrameReader, FrameWriter

BEAT_S = 15.0
"""How often the other side hears of this one, which it takes for gone after 90 s."""
CLOSE_S = 1.0
"""Longest wait for a frame that is being sent, or for a thread that reads, when hanging up."""
_Reply = tuple[FarAnswer, Arrays] | None
"""None: the connection is lost."""


class LinkLost(InfraError):
    """The connection ended under a call; unknown whether it was carried out."""


class Carrier(Protocol):
    """Two streams to another process, on which it serves calls already."""

    @property
    def source(self) -> BinaryIO:
        """Frames of answers."""
        ...

    @property
    def target(self) -> BinaryIO:
        """Takes frames of calls; closing it is the goodbye."""
        ...

    def end(self) -> None:
        """End what carries the streams, once `target` is closed."""
        ...

    def why_ended(self) -> str:
        """Return why the other side cannot be used, in one line that says what to do."""
        ...


class Link:
    """A connection; safe from several threads."""

    def __init__(
        self,
        carrier: Carrier,
        show: Callable[[str], None],
        remembered_bytes: int = REMEMBERED_BYTES,
    ) -> None:
        """Take over streams, and begin to read answers.

        Args:
            carrier: The other side.
            show: Told the lines of progress of the other side.
            remembered_bytes: Of arrays that go there, so as not to send them again; 0: none.
        """
        self._carrier = carrier
        self._show = show
        self._writer = FrameWriter(carrier.target, remembered_bytes)
        self._refusal = ""
        self._lock = threading.Lock()  # of what follows
        self._free: list[int] = []
        self._waiting: dict[int, SimpleQueue[_Reply]] = {}
        self._is_lost = False
        self._over = threading.Event()
        self._answers = threading.Thread(target=self._read_answers, name="answers", daemon=True)
        self._answers.start()
        threading.Thread(target=self._beat, name="beat", daemon=True).start()

    @property
    def is_lost(self) -> bool:
        """Whether no call can be made any more."""
        return self._is_lost

    def why_ended(self) -> str:
        """Return why the other side cannot serve, in its own words if it said any."""
        return self._refusal or self._carrier.why_ended()

    @contextmanager
    def lane(self) -> Generator[int]:
        """Give a lane that no other thread uses meanwhile."""
        with self._lock:
            number = self._free.pop() if self._free else len(self._waiting) + 1
            self._waiting.setdefault(number, SimpleQueue())
        try:
            yield number
        finally:
            with self._lock:
                self._free.append(number)

    def ask(self, lane: int, call: Call, arrays: Arrays | None = None) -> tuple[FarAnswer, Arrays]:
        """Return the answer to a call, with its arrays.

        Raises:
            LinkLost: The connection ended first.
            KoptError: As the device there raised it.
        """
        answers = self._waiting[lane]
        try:
            if self._is_lost:
                raise BrokenPipeError
            self._writer.write(lane, CALL.dump_json(call), arrays)
        except (OSError, ValueError) as error:  # ValueError: closed by `close`
            raise LinkLost("the connection is lost") from error
        try:
            while (reply := answers.get()) is not None:
                answer, outputs = reply
                if isinstance(answer, GpuTimeAnswer):
                    count_gpu_time(answer.seconds)
                    continue
                if isinstance(answer, ErrorAnswer):
                    raise _raised(answer)
                return answer, outputs
        except KeyboardInterrupt:  # between call and answer: they no longer pair
            self.close()
            raise
        answers.put(None)  # for the next call on this lane
        raise LinkLost("the connection is lost")

    def close(self) -> None:
        """Hang up: the other side ends all that it does for this connection."""
        self._lose()
        with suppress(OSError):
            self._writer.close(CLOSE_S)
        self._carrier.end()
        # A process that ssh has left behind for further connections (ControlPersist) may hold the
        # stream open; then it stays with its thread.
        self._answers.join(CLOSE_S)
        if not self._answers.is_alive():
            self._carrier.source.close()

    def _read_answers(self) -> None:
        reader = FrameReader(self._carrier.source)
        # What cannot be read is as good as the end, at which the pipe is closed: `close` may be
        # long over, as where a process that ssh has left behind held the other end.
        try:
            with suppress(BrokenFrame, ValidationError, OSError, ValueError), self._carrier.source:
                while (frame := reader.read()) is not None:
                    self._take(frame)
        finally:
            self._lose()  # else callers would wait for ever

    def _take(self, frame: Frame) -> None:
        """Give an answer to the caller that waits for it."""
        answer = FAR_ANSWER.validate_json(frame.message)
        if isinstance(answer, ToldAnswer):
            self._show(one_line(answer.line))
        elif frame.lane in self._waiting:
            self._waiting[frame.lane].put((answer, frame.arrays))
        elif isinstance(answer, ErrorAnswer):  # of no call: it cannot serve at all
            self._refusal = one_line(answer.message)

    def _lose(self) -> None:
        self._over.set()
        with self._lock:
            self._is_lost = True
            for answers in self._waiting.values():
                answers.put(None)

    def _beat(self) -> None:
        while not self._over.wait(BEAT_S):
            with suppress(OSError, ValueError):
                self._writer.write(0, CALL.dump_json(Beat()))


def one_line(value: object) -> str:
    """Return what another process says as text of one line."""
    return plain(str(value), but="")


def _raised(answer: ErrorAnswer) -> Exception:
    kinds: dict[str, type[KoptError]] = {
        "tool": ToolError,
        "setup": SetupError,
        "infra": InfraError,
        "timing_lost": TimingLost,
    }
    if answer.error in kinds:
        return kinds[answer.error](plain(answer.message))
    return RuntimeError(f"on the other machine:\n{plain(answer.message)}")
