"""What an evaluator does while it has no caller: second workers start, and at last it ends.

A second worker's imports take seconds, and a timing waits until they are over. So they begin once
callers have paused, not in the moment between two calls.
"""

import math
import time
from collections.abc import Callable
from typing import Literal

PAUSE_S = 10.0
"""Seconds without a caller after which second workers start."""


class Quiet:
    """The time without a caller."""

    def __init__(self, idle_s: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin where nobody has been yet, so that there is no worker to stand beside.

        Args:
            idle_s: Seconds after which the evaluator ends if it hears of nobody; None: never.
            clock: Gives the time in seconds.
        """
        self._idle_s = math.inf if idle_s is None else idle_s
        self._clock = clock
        self._heard = clock()
        self._rests_at = math.inf

    @property
    def wait_s(self) -> float | None:
        """How long to wait for somebody until something is due; None: for ever."""
        at = min(self._rests_at, self._heard + self._idle_s)
        return None if at == math.inf else max(0.0, at - self._clock())

    def hear(self) -> None:
        """Put the end off: somebody is at a door, if only to ask how things are."""
        self._heard = self._clock()

    def begin_anew(self) -> None:
        """Put all off: a caller came or left."""
        self.hear()
        self._rests_at = self._heard + PAUSE_S

    def due(self) -> Literal["rest", "end"] | None:
        """Return what is to be done now, each time once."""
        now = self._clock()
        if now >= self._heard + self._idle_s:
            return "end"
        if now >= self._rests_at:
            self._rests_at = math.inf
            return "rest"
        return None
