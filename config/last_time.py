"""How long the steps of some work took the last time, and so how long the rest may take now.

It is for work whose steps are too few and too unlike each other to tell the rest by their pace.
"""

import json
import time
from collections.abc import Callable
from contextlib import suppress

from .errors import SetupError
from .files import ensure_folder, write_atomically
from .settings import Settings
from .time_left import AS_LAST_TIME, counted_down, left_words

_MOST_S = 1e6  # of a step: what is longer, or NaN, was not measured here


class LastTime:
    """Measures the steps of one piece of work; what they took is kept in KOPT_HOME at its end."""

    def __init__(
        self, work: str, settings: Settings, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Read what `work`, the name of a file, took the last time."""
        self._file = settings.durations / f"{work}.json"
        self._clock = clock
        self._before = self._read()
        self._took_s: dict[str, float] = {}
        self._step, self._began_s = 0, clock()

    def begin(self, step: int) -> str:
        """Note that `step`, from 1, is under way, and return `left`."""
        if step != self._step:
            self._note()
            self._step, self._began_s = step, self._clock()
        return self.left

    def step(self, number: int, progress: Callable[[str], None]) -> Callable[[str], None]:
        """Return `progress` for the lines of a step, which begins now: with the time left of all.

        A line's own time left stands where the last time tells none.
        """
        self.begin(number)

        def tell(line: str) -> None:
            words, own = counted_down(line, 0.0)
            progress(f"{words}{self.left or own}")

        return tell

    @property
    def left(self) -> str:
        """How long this step and those after it will take, as `left_words`; empty if unknown."""
        after = sum(took for step, took in self._before.items() if int(step) > self._step)
        of_this = self._before.get(str(self._step), 0.0) - (self._clock() - self._began_s)
        return left_words(after + max(0.0, of_this), AS_LAST_TIME)

    def end(self) -> None:
        """Keep what the steps took, now that the last has ended; a read-only home keeps nothing."""
        self._note()
        with suppress(OSError, SetupError):
            ensure_folder(self._file.parent)
            write_atomically(self._file, json.dumps(self._took_s), durable=False)

    def _note(self) -> None:
        if self._step:
            self._took_s[str(self._step)] = self._clock() - self._began_s

    def _read(self) -> dict[str, float]:
        """Return the seconds by step; nothing where the file is not there, or is not ours."""
        try:
            found = json.loads(self._file.read_text("utf-8"))
            before = {str(int(step)): float(took) for step, took in found.items()}
        except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return {}
        return before if all(0 <= took < _MOST_S for took in before.values()) else {}
