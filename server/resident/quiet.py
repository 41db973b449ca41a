"""What an evaluator does while it has no caller: second workers start, and at last it ends.

A second worker's imports take seconds, and a timing waits until they are over. So they begin once
callers have paused, not in the moment between two calls.
"""

from typing import Literal

PAUSE_S = 10.0
"""Seconds without a caller after which second workers start."""


class Quiet:
    """The time without a caller so far, counted in the two waits that it is made of."""

    def __init__(self, idle_s: float | None) -> None:
        """Begin where nobody has been yet, so that there is no worker to stand beside.

        Args:
            idle_s: Seconds without a caller after which the evaluator ends; None: never.
        """
        self._idle_s = idle_s
        self._has_rested = True
        self._waited_s = 0.0

    @property
    def wait_s(self) -> float | None:
        """How long to wait for a caller until something is to be done; None: for ever."""
        if self._has_rested:
            return None if self._idle_s is None else self._idle_s - self._waited_s
        return PAUSE_S if self._idle_s is None else min(PAUSE_S, self._idle_s)

    def is_broken(self) -> None:
        """Begin anew: somebody came or left."""
        self._has_rested = False
        self._waited_s = 0.0

    def is_over(self) -> Literal["rest", "end"]:
        """Return what is due after `wait_s` seconds without a caller."""
        if self._has_rested or (self._idle_s is not None and self._idle_s <= PAUSE_S):
            return "end"
        self._has_rested = True
        self._waited_s = PAUSE_S
        return "rest"
