"""How much of some work is done, and how long the rest will take."""

import time
from collections.abc import Callable

_LEAST_DONE = 3
"""So many pieces tell how long one takes."""
_LEAST_S = 1.0
_IN_MINUTES_S = 100.0


class TimeLeft:
    """Counts pieces of work that take about as long as each other."""

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin now, with `total` pieces ahead."""
        self._total = total
        self._clock = clock
        self._began_s = clock()

    def place(self, number: int) -> str:
        """Return `3 of 16`, as piece `number` begins, from 1."""
        return f"{number} of {self._total}"

    def left(self, number: int) -> str:
        """Return `, about 12 s left` as piece `number` begins; empty where nobody can tell yet."""
        done = number - 1
        if done < _LEAST_DONE:
            return ""
        return left_words((self._clock() - self._began_s) / done * (self._total - done))


def left_words(left_s: float) -> str:
    """Return `, about 12 s left`; empty below a second."""
    if left_s < _LEAST_S:
        return ""
    words = f"{left_s:.0f} s" if left_s < _IN_MINUTES_S else f"{left_s / 60:.0f} min"
    return f", about {words} left"
