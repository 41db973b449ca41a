"""How often each of many may come: a bucket of permits a key, refilled at a steady rate."""

import math
import time
from collections.abc import Callable

_MAX_KEYS = 4096


class RateLimit:
    """Permits for any number of keys, in bounded memory."""

    def __init__(
        self, per_s: float, at_once: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """Refill `per_s` permits a second, up to `at_once`."""
        self._per_s = per_s
        self._at_once = at_once
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}
        """Permits left, and when that was."""

    def wait_s(self, key: str) -> int:
        """Take a permit of `key`: 0, or the whole seconds after which there is one again."""
        now = self._clock()
        left, then = self._buckets.pop(key, (float(self._at_once), now))
        left = min(self._at_once, left + (now - then) * self._per_s)
        granted = left >= 1
        self._buckets[key] = (left - 1 if granted else left, now)
        if len(self._buckets) > _MAX_KEYS:  # the first is the one not seen for longest
            del self._buckets[next(iter(self._buckets))]
        return 0 if granted else max(1, math.ceil((1 - left) / self._per_s))
