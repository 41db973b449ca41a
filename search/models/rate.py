"""One rate limit for all branches of a run: where threads wait until the next call may begin."""

import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass

from .call_errors import CallFailed
from .halt import Halt
from .model import Usage
from .pace import AdaptiveLimit, MinuteBucket
from .patience import LONGEST_WAIT_S


@dataclass(frozen=True)
class RateSettings:
    """What the provider's plan allows, as far as the user says so."""

    concurrency: int
    """Most calls at once; the limit adapts below it."""
    requests_per_minute: int | None = None
    input_tokens_per_minute: int | None = None
    """Of prompts, as far as they are not read from the provider's cache.

    Source:
        https://docs.anthropic.com/en/api/rate-limits, "Cache-aware ITPM".
    """


@dataclass
class Permit:
    """One call that may be made, and is counted until it has ended."""

    likely_prompt_tokens: int
    """What was taken for it from the tokens of a minute."""
    usage: Usage | None = None
    """What it really had, once it is answered: whoever makes the call says so here."""


class RateLimit:
    """Lets calls begin: as many at once, and a minute, as the service takes."""

    def __init__(
        self, settings: RateSettings, halt: Halt, now_s: Callable[[], float] = time.monotonic
    ) -> None:
        """Begin with full buckets and the whole concurrency."""
        self._halt = halt
        self._now_s = now_s
        self._turn = threading.Condition()  # guards all below
        self._limit = AdaptiveLimit(settings.concurrency)
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
                if asked_s <= LONGEST_WAIT_S:  # else whoever calls gives up: nobody waits for that
                    self._closed_until_s = max(self._closed_until_s, now_s + asked_s)
            if permit.usage is not None:
                self._limit.answered()
                counted = permit.usage.prompt_tokens - permit.usage.cache_read_tokens
                self._tokens.take(counted - permit.likely_prompt_tokens, now_s)
            self._turn.notify_all()


def _bucket(per_minute: int | None, now_s: float) -> MinuteBucket:
    # Without a limit it has so much that nobody ever waits for it.
    return MinuteBucket(1e18 if per_minute is None else per_minute, now_s)
