"""How much of some work is done, and how long the rest will take."""

import re
import time
from collections.abc import Callable
from math import ceil

_LEAST_DONE = 3
"""So many pieces tell how long one takes; of few, a quarter does."""
_LEAST_S = 1.0
_IN_MINUTES_S = 100.0
_PLACE = re.compile(r"\d+ of \d+: ")


class TimeLeft:
    """Counts pieces of work that take about as long as each other."""

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin now, with `total` pieces ahead."""
        self._total = total
        self._least_done = min(_LEAST_DONE, ceil(total / 4))
        self._clock = clock
        self._began_s = clock()

    def place(self, number: int) -> str:
        """Return `3 of 16`, as piece `number` begins, from 1."""
        return f"{number} of {self._total}"

    @staticmethod
    def is_placed(line: str) -> bool:
        """Return whether a line begins with the place of a piece, `3 of 16: `."""
        return _PLACE.match(line) is not None

    def left(self, number: int) -> str:
        """Return `, about 12 s left` as piece `number` begins; empty where nobody can tell yet."""
        done = number - 1
        if done < self._least_done:
            return ""
        return left_words((self._clock() - self._began_s) / done * (self._total - done))

    def piece(self, number: int, progress: Callable[[str], None]) -> Callable[[str], None]:
        """Return `progress` for the lines of piece `number`, which begins now: its place is added.

        The time left behind it is that of all pieces: one in the line is of this piece alone, and
        stays only where there is no other.
        """
        began_s, at_first = self._clock(), self.left(number)

        def tell(line: str) -> None:
            words, own = counted_down(line, 0.0)
            _, left = counted_down(at_first, self._clock() - began_s)
            progress(f"{self.place(number)}: {words}{own if self._total == 1 else left}")

        return tell


def left_words(left_s: float, source: str = "") -> str:
    """Return `, about 12 s left`, and what tells so; empty below a second."""
    if left_s < _LEAST_S:
        return ""
    words = f"{left_s:.0f} s" if left_s < _IN_MINUTES_S else f"{left_s / 60:.0f} min"
    return f", about {words} left{source}"


AS_LAST_TIME = " as last time"
"""Stands behind a time left that an earlier run tells (`last_time.py`), not this one's pace."""


_LEFT = re.compile(rf", about (\d+) (s|min) left({AS_LAST_TIME})?")


def counted_down(line: str, elapsed_s: float) -> tuple[str, str]:
    """Return a line without its time left, and what is left of that after `elapsed_s`.

    The second is as `left_words` gives it: empty where the line tells none, or where it is over.
    """
    told = _LEFT.search(line)
    if told is None:
        return line, ""
    left_s = int(told[1]) * (1 if told[2] == "s" else 60)
    return line[: told.start()] + line[told.end() :], left_words(left_s - elapsed_s, told[3] or "")
