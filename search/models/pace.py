"""The arithmetic of pace: how many calls at once, and how many requests and tokens a minute.

Pure: time is passed in, nothing waits. `rate.py` puts it between the threads and the service.

Source:
    Chiu, Jain, "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance", 1989.
"""

COOL_DOWN_S = 15.0
"""Refusals this close together are one episode: they come from calls that were under way."""
_SHRINK = 0.8
_GROW = 1.05


class AdaptiveLimit:
    """Calls at once: less after each episode of refusals, more after each clean round."""

    def __init__(self, most: int) -> None:
        """Begin with `most`, which is never exceeded."""
        self._most = most
        self._limit = float(most)
        self._clean = 0
        self._cool_until_s = float("-inf")

    @property
    def allowed(self) -> int:
        """How many calls may be under way now."""
        return int(self._limit)

    def refused(self, now_s: float) -> None:
        """Take note of a call that the service refused as one too many."""
        self._clean = 0
        if now_s >= self._cool_until_s:
            self._limit = max(1.0, self._limit * _SHRINK)
            self._cool_until_s = now_s + COOL_DOWN_S

    def answered(self) -> None:
        """Take note of a call that went well; as many as the limit are a clean round."""
        self._clean += 1
        if self._clean >= self._limit:
            self._clean = 0
            self._limit = min(float(self._most), self._limit * _GROW)


class MinuteBucket:
    """An amount a minute that flows in evenly and can be saved up for one minute."""

    def __init__(self, per_minute: float, now_s: float) -> None:
        """Begin full."""
        self._most = per_minute
        self._level = per_minute
        self._at_s = now_s

    def wait_s(self, amount: float, now_s: float) -> float:
        """Return how long until `amount` can be taken; more than a minute's worth needs a full one.

        Returns:
            Seconds; 0.0 if it can be taken now.
        """
        self._fill(now_s)
        missing = min(amount, self._most) - self._level
        return max(0.0, missing * 60.0 / self._most)

    def take(self, amount: float, now_s: float) -> None:
        """Take `amount`, or give back a negative one; the level may fall below zero."""
        self._fill(now_s)
        self._level = min(self._most, self._level - amount)

    def _fill(self, now_s: float) -> None:
        self._level = min(self._most, self._level + (now_s - self._at_s) * self._most / 60.0)
        self._at_s = now_s
