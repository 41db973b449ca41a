"""Whose turn it is: one caller at a time, and next the one whose last turn is longest ago.

So a caller with many threads waits as long as one with a single thread. A caller that is new counts
as if it had just had a turn: however many come, none that waits starves.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from kopt.config.errors import InfraError

_REMEMBERED_WAITS = 1_000


@dataclass(eq=False)
class Visitor:
    """One caller of the evaluator."""

    words: str
    """The caller's process, for others who wait."""
    tell: Callable[[str], None]
    """Takes lines of progress."""
    last_turn: int = -1
    """Number of its last turn, or of the last of all when it came; -1: it has not come yet."""
    is_gone: bool = False


@dataclass(eq=False)
class _Ticket:
    visitor: Visitor
    number: int


class Turns:
    """The queue of one GPU; safe from all threads."""

    def __init__(self, name: str) -> None:
        """Nobody waits for the GPU called `name`."""
        self._name = name
        self._changed = threading.Condition()  # of everything below
        self._tickets: list[_Ticket] = []
        self._holder: Visitor | None = None
        self._drawn = 0
        self._waits_s: deque[float] = deque(maxlen=_REMEMBERED_WAITS)
        self.turns = 0
        """How many have begun."""
        self.busy_s = 0.0
        """What they took, in seconds, the one under way left out."""

    @property
    def holder(self) -> Visitor | None:
        """The caller whose turn it is."""
        return self._holder

    @contextmanager
    def turn(self, visitor: Visitor) -> Generator[None]:
        """Wait for the GPU and have it inside the `with`.

        Raises:
            InfraError: The caller has gone while it waited.
        """
        began = time.monotonic()
        ticket = self._draw(visitor)
        try:
            self._wait_for(ticket)
        except BaseException:
            self._leave(ticket)
            raise
        taken = time.monotonic()
        with self._changed:
            self._waits_s.append(taken - began)
        try:
            yield
        finally:
            self._pass_on(time.monotonic() - taken)

    def drop(self, visitor: Visitor) -> None:
        """Let a caller that is gone wait no longer."""
        with self._changed:
            visitor.is_gone = True
            self._changed.notify_all()

    def is_waiting(self, visitor: Visitor) -> bool:
        """Return whether a thread of this caller waits."""
        with self._changed:
            return any(ticket.visitor is visitor for ticket in self._tickets)

    def waits_s(self) -> list[float]:
        """Return how long the last turns were waited for, sorted, in seconds."""
        with self._changed:
            return sorted(self._waits_s)

    def _draw(self, visitor: Visitor) -> _Ticket:
        with self._changed:
            if visitor.last_turn < 0:
                visitor.last_turn = self.turns
            self._drawn += 1
            ticket = _Ticket(visitor, self._drawn)
            self._tickets.append(ticket)
            self._changed.notify_all()
            return ticket

    def _wait_for(self, ticket: _Ticket) -> None:
        told = ""
        while True:
            with self._changed:
                if ticket.visitor.is_gone:
                    raise InfraError("the caller has hung up")
                self._tickets.sort(key=lambda one: (one.visitor.last_turn, one.number))
                if self._holder is None and self._tickets[0] is ticket:
                    self._begin(ticket)
                    return
                words = self._words(ticket)
                if words == told:
                    self._changed.wait()
                    continue
            told = words
            ticket.visitor.tell(words)  # without the lock, since it may block

    def _begin(self, ticket: _Ticket) -> None:
        self._tickets.remove(ticket)
        self._holder = ticket.visitor
        self.turns += 1
        ticket.visitor.last_turn = self.turns

    def _words(self, ticket: _Ticket) -> str:
        before = self._tickets.index(ticket) + (self._holder is not None)
        held = "" if self._holder is None else f"; held by {self._holder.words}"
        return f"waiting for {self._name}, {before} before you{held}"

    def _leave(self, ticket: _Ticket) -> None:
        with self._changed:
            if ticket in self._tickets:
                self._tickets.remove(ticket)
            self._changed.notify_all()

    def _pass_on(self, took_s: float) -> None:
        with self._changed:
            self._holder = None
            self.busy_s += took_s
            self._changed.notify_all()
