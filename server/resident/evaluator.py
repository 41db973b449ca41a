"""Lets callers of a resident evaluator in, serves each on a thread, and knows when to end."""

import os
import select
import socket
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager, suppress
from types import TracebackType
from typing import NamedTuple, Protocol, Self

import h11
from pydantic import ValidationError

from kopt.config.callbacks import ignore
from kopt.config.home_use import using_home
from kopt.config.settings import Settings
from kopt.server.far import service
from kopt.server.far.desk import Desk, Helpers
from kopt.tools.devices.device import Device
from kopt.tools.remote.byte_streams import ByteSocket, streams_of
from kopt.tools.remote.link import BEAT_S
from kopt.tools.remote.wire import REMEMBERED_BYTES, FrameReader, FrameWriter
from kopt.tools.resident.greeting import CallerStatus, EvaluatorStatus

from .quiet import Quiet
from .shared_gpu import SharedGpu
from .turns import Visitor

GREETING_S = 10.0
"""Longest time until a connection has said what it wants, and proved that it may."""
_SILENCE_S = 6 * BEAT_S
"""A caller that says nothing for so long is gone, or stopped with the GPU in its hands."""
MOST_CONNECTIONS = 256
"""Each door lets in so many at once: whoever crowds the port leaves this machine's socket free."""


class Guest(NamedTuple):
    """A connection that wants to be served, and may."""

    connection: ByteSocket
    """Frames go over it after the welcome."""
    words: str
    """The caller, for others who wait."""
    welcome: Callable[[], None]
    """Tells the caller that it is served."""
    refuse: Callable[[], None]
    """Tells the caller that the evaluator ends."""
    remembered_bytes: int = REMEMBERED_BYTES
    """Bytes of arrays sent to the caller that are not sent again; 0 sends all arrays whole."""


class Door(Protocol):
    """One way in."""

    @property
    def listener(self) -> socket.socket:
        """Accepts connections."""
        ...

    def meet(self, connection: socket.socket, evaluator: "ResidentEvaluator") -> Guest | None:
        """Return who wants to be served; None once all else was done, or refused.

        It runs on a thread of its own, for `GREETING_S` at most.

        Raises:
            OSError: It broke.
            ValidationError: It wants nothing that there is.
        """
        ...

    def retire(self) -> None:
        """Be out of the way of an evaluator that starts now."""
        ...

    def close(self) -> None:
        """Listen no longer."""
        ...


class ResidentEvaluator:
    """One GPU for whoever comes through its doors."""

    def __init__(
        self, doors: Sequence[Door], settings: Settings, gpu: SharedGpu, idle_s: float | None
    ) -> None:
        """Take over doors; connections wait until `serve`.

        Args:
            doors: Where callers come in.
            settings: Of this process.
            gpu: What callers share.
            idle_s: How long to stay without a caller, in seconds; None: until it is stopped.
        """
        self._doors, self._settings, self._gpu, self._idle_s = doors, settings, gpu, idle_s
        self._began = time.monotonic()
        self._since = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._changed, self._wakes = os.pipe()
        self._room = {door: threading.Semaphore(MOST_CONNECTIONS) for door in doors}
        self._lock = threading.Lock()  # of what follows
        self._visitors: dict[Visitor, ByteSocket] = {}
        self._is_stopping = False

    def __enter__(self) -> Self:
        """Return this evaluator."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Listen no longer and end all workers."""
        self.retire()
        for door in self._doors:
            door.close()
        self._gpu.close()

    def serve(self) -> None:
        """Serve callers until none has come for the idle time, or the evaluator was stopped."""
        doors = {door.listener.fileno(): door for door in self._doors}
        quiet, is_idle = Quiet(self._idle_s), True
        while True:
            wait_s = quiet.wait_s if is_idle else None
            ready, _, _ = select.select([*doors, self._changed], (), (), wait_s)
            if self._changed in ready:
                os.read(self._changed, 4096)
                quiet.begin_anew()
            elif ready:
                quiet.hear()
            for number in ready:
                if number in doors:
                    self._let_in(doors[number])
            due = None if ready else quiet.due()
            with self._lock:
                is_idle = not self._visitors
                if is_idle and (self._is_stopping or due == "end"):
                    self._retire()
                    return
            if due == "rest":
                threading.Thread(target=self._gpu.rest, daemon=True).start()

    def retire(self) -> None:
        """Serve no new caller: the next evaluator may be there for them."""
        with self._lock:
            self._retire()

    def stop(self) -> None:
        """End once the last caller is gone."""
        self.retire()
        self.wake()

    def end(self) -> None:
        """End now: hang up on all callers."""
        self.retire()
        with self._lock:
            connections = list(self._visitors.values())
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self.wake()

    def status(self) -> EvaluatorStatus:
        """Return how it is at this moment."""
        turns, lived_s = self._gpu.turns, time.monotonic() - self._began
        waits_s = turns.waits_s()
        with self._lock:
            callers = tuple(map(self._caller, self._visitors))
            return EvaluatorStatus(
                device=self._gpu.name,
                pid=os.getpid(),
                since=self._since,
                idle_s=self._idle_s,
                is_stopping=self._is_stopping,
                callers=callers,
                turns=turns.turns,
                busy_share=turns.busy_s / lived_s,
                wait_p50_s=waits_s[len(waits_s) // 2] if waits_s else None,
                wait_p95_s=waits_s[len(waits_s) * 95 // 100] if waits_s else None,
            )

    def _caller(self, visitor: Visitor) -> CallerStatus:
        if self._gpu.turns.holder is visitor:
            return CallerStatus(caller=visitor.words, state="on the GPU")
        is_waiting = self._gpu.turns.is_waiting(visitor)
        return CallerStatus(caller=visitor.words, state="waiting" if is_waiting else "idle")

    def _let_in(self, door: Door) -> None:
        with suppress(OSError):  # whoever came has gone again
            connection, _ = door.listener.accept()
            if self._room[door].acquire(blocking=False):
                self._meet_beside(door, connection)
            else:
                connection.close()

    def _meet_beside(self, door: Door, connection: socket.socket) -> None:
        """Meet a connection on a thread of its own, if there can be one more."""
        try:
            threading.Thread(target=self._meet, args=(door, connection), daemon=True).start()
        except RuntimeError:  # no more threads: it is better to serve those who are here
            self._room[door].release()
            connection.close()

    def _meet(self, door: Door, connection: socket.socket) -> None:
        try:
            with connection, suppress(OSError, ValidationError, h11.ProtocolError):
                with _time_limit(connection):
                    caller = door.meet(connection, self)
                if caller is not None:
                    self._serve_one(caller)
        finally:
            self._room[door].release()

    def _serve_one(self, caller: Guest) -> None:
        """Serve a caller until it hangs up.

        Raises:
            OSError: The connection broke.
        """
        visitor = Visitor(caller.words, ignore)
        with self._lock:
            is_late = self._is_stopping
            if not is_late:
                self._visitors[visitor] = caller.connection
        if is_late:
            caller.refuse()
            return
        self.wake()
        try:
            caller.connection.settimeout(_SILENCE_S)
            caller.welcome()
            source, target = streams_of(caller.connection)

            def open_here(
                name: str, *, has_spare: bool, helpers: Helpers, told: Callable[[str], None]
            ) -> Device:
                del name  # the callers' GPU is this one
                visitor.tell = told
                return self._gpu.for_caller(visitor, helpers, has_spare=has_spare)

            with using_home(self._settings.home):
                writer = FrameWriter(target, caller.remembered_bytes)
                settings = self._settings
                service.serve(
                    FrameReader(source), writer, lambda told: Desk(open_here, settings, told)
                )
        finally:
            with self._lock:
                del self._visitors[visitor]
            self.wake()

    def _retire(self) -> None:
        """`retire` with the lock held."""
        if not self._is_stopping:
            for door in self._doors:
                door.retire()
            self._is_stopping = True

    def wake(self) -> None:
        """Have `serve` look again who is there."""
        os.write(self._wakes, b"!")


@contextmanager
def _time_limit(connection: socket.socket) -> Generator[None]:
    """Hang up on a connection if the inside of the `with` takes too long, however much it sends."""

    def hang_up() -> None:
        with suppress(OSError):  # it is closed already
            connection.shutdown(socket.SHUT_RDWR)

    connection.settimeout(GREETING_S)
    limit = threading.Timer(GREETING_S, hang_up)
    limit.daemon = True
    limit.start()
    try:
        yield
    finally:
        limit.cancel()
