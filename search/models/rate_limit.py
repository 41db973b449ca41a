"""One rate limit for all calls of a run: calls at once, requests and input tokens a minute.

The concurrency adapts to refusals (AIMD); a minute's amounts are token buckets. Threads wait in
`RateLimit.permit` until their call may begin.

Source:
    Chiu, Jain, "Analysis of the Increase and Decrease Algorithms for Congestion Avoidance", 1989.
"""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from .errors import CallFailed, Halt
from .model import Usage
from .retry import LONGEST_WAIT_S

COOL_DOWN_S = 15.0
"""Refusals this close together are one episode: they come from calls that were under way."""
_SHRINK = 0.8
_GROW = 1.05


class ConcurrencyLimit:
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


class TokenBucket:
    """A token bucket: an amount per minute that flows in evenly, up to one minute's worth."""

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


@dataclass(frozen=True)
class RateSettings:
    """Limits of the provider's plan, as far as the user has set them."""

    concurrency: int
    """Most calls at once; the limit adapts below it."""
    requests_per_minute: int | None = None
    input_tokens_per_minute: int | None = None
    """Prompt tokens that are not read from the provider's cache.

    Source:
        https://docs.anthropic.com/en/api/rate-limits, "Cache-aware ITPM".
    """


@dataclass
class Permit:
    """One call that may be made, and is counted until it has ended."""

    likely_prompt_tokens: int
    """Tokens that were taken for it from the minute's bucket."""
    usage: Usage | None = None
    """Set by the caller once the call is answered: the difference goes back to the bucket."""


class RateLimit:
    """Lets calls begin: as many at once, and a minute, as the service takes."""

    def __init__(
        self, settings: RateSettings, halt: Halt, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin with full buckets and the whole concurrency."""
        self._halt = halt
        self._now_s = now_s
        self._turn = threading.Condition()  # guards all below
        self._limit = ConcurrencyLimit(settings.concurrency)
        self._requests = _bucket(settings.requests_per_minute, now_s())
        self._tokens = _bucket(settings.input_tokens_per_minute, now_s())
        self._running = 0
        self._closed_until_s = float("-inf")

    @property
    def allowed(self) -> int:
        """How many calls may be under way now."""
        with self._turn:
            return self._limit.allowed

    @contextmanager
    def permit(self, likely_prompt_tokens: int) -> Generator[Permit]:
        """Wait for a place, and keep it for the block, in which one call is made.

        Raises:
            Stopped: The run is being stopped.
        """
        self._enter(likely_prompt_tokens)
        permit = Permit(likely_prompt_tokens)
        failure: CallFailed | None = None
        try:
            yield permit
        except CallFailed as error:
            failure = error
            raise
        finally:
            self._leave(permit, failure)

    def _enter(self, tokens: int) -> None:
        with self._turn:
            while (wait_s := self._wait_s(tokens)) > 0.0:
                self._halt.wait_on(self._turn, wait_s)
            self._halt.check()
            self._running += 1
            self._requests.take(1, self._now_s())
            self._tokens.take(tokens, self._now_s())

    def _wait_s(self, tokens: int) -> float:
        now_s = self._now_s()
        if self._running >= self._limit.allowed:
            return float("inf")
        return max(
            self._closed_until_s - now_s,
            self._requests.wait_s(1, now_s),
            self._tokens.wait_s(tokens, now_s),
        )

    def _leave(self, permit: Permit, failure: CallFailed | None) -> None:
        with self._turn:
            now_s = self._now_s()
            self._running -= 1
            if failure is not None and failure.status == 429:
                self._limit.refused(now_s)
                asked_s = failure.retry_after_s or 0.0
                if asked_s <= LONGEST_WAIT_S:  # a longer one ends the call
                    self._closed_until_s = max(self._closed_until_s, now_s + asked_s)
            if permit.usage is not None:
                self._limit.answered()
                counted = permit.usage.prompt_tokens - permit.usage.cache_read_tokens
                self._tokens.take(counted - permit.likely_prompt_tokens, now_s)
            self._turn.notify_all()


def _bucket(per_minute: int | None, now_s: float) -> TokenBucket:
    # Without a limit the bucket is so large that no call ever waits for it.
    return TokenBucket(1e18 if per_minute is None else per_minute, now_s)
