"""The retry policy of model calls: which failures, after how long, and how often.

The client library's own retries are off: a retry may have to be reserved in the budget anew, and
must end when the run is stopped. Pure: the caller waits.

Source:
    "Exponential Backoff And Jitter", AWS Architecture Blog, 2015: full jitter.
"""

import random
from dataclasses import dataclass, field

from .errors import CallFailed

_BUSY = (429, 529)  # too many requests, overloaded: nothing is wrong with the call or the service
_LONGEST_STEP_S = 60.0

LONGEST_WAIT_S = 1800.0
"""The longest wait for one call, whatever `retry-after` asks for."""


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long a call is retried."""

    tries: int = 6
    """Calls in a row that may fail with 5xx, a timeout or no connection, where the service never
    answered before: then it is more likely misspelt than away."""
    away_tries: int = 100
    """Failures in a row of a service that had answered: more than fit into `busy_s`."""
    costly_tries: int = 3
    """Calls in a row that may fail after the service began to answer, because the stream broke or
    the reply is no reply: each may be paid."""
    busy_s: float = LONGEST_WAIT_S
    """Seconds that one call waits in all; the only limit for a service that is busy, or that is
    away after it had answered: a night's run outlasts a broken line."""
    step_s: float = 1.0
    """The first wait at most, seconds, if the service names none; it doubles up to a minute."""


@dataclass
class Retries:
    """The failures of one call so far."""

    policy: RetryPolicy
    has_answered: bool = False
    """Whether the service has answered any call of this process."""
    jitter: random.Random = field(default_factory=random.Random)
    """Calls that failed together must not come back together."""
    _tries: int = 0
    _costly: int = 0
    _busy: int = 0
    _waited_s: float = 0.0

    def wait_s(self, failure: CallFailed) -> float | None:
        """Return how long to wait before the retry; None: give the call up."""
        if failure.kind != "time" and not (failure.kind == "us" and failure.may_cost):
            return None
        if failure.may_cost:
            self._costly += 1
            spent = self._costly >= self.policy.costly_tries
        elif failure.status in _BUSY:
            self._busy += 1
            spent = False
        else:
            self._tries += 1
            limit = self.policy.away_tries if self.has_answered else self.policy.tries
            spent = self._tries >= limit
        wait_s = self._step_s(failure)
        if spent or self._waited_s + wait_s > self.policy.busy_s:
            return None
        self._waited_s += wait_s
        return wait_s

    def _step_s(self, failure: CallFailed) -> float:
        before = self._tries + self._costly + self._busy - 1
        step_s = self.policy.step_s * 2.0 ** min(before, 10)
        own_s = self.jitter.uniform(0.0, min(_LONGEST_STEP_S, step_s))
        if failure.retry_after_s is None:
            return own_s
        # A service that says "at once" for ever is not asked thousands of times a second.
        return max(failure.retry_after_s, min(own_s, self.policy.step_s))
