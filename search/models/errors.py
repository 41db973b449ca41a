"""Why a call of a model gave no reply, and the signal that ends all waiting for one.

KoptError
├── CallFailed    no answer; `kind` says who can mend it
├── BudgetSpent   the call was not made, because it might cost more than is left
└── Stopped       the run is being stopped; every wait for a model ends

What a model says is never an error: a refusal or a cut reply is a `ModelReply`.
"""

import threading
from dataclasses import dataclass
from typing import Literal

from kopt.config.errors import KoptError

FailureKind = Literal["time", "us", "user"]
"""Who can mend it: time (pause the run, resume it later), us (end this conversation, keep what it
has made), the user (a key, a permission, the name of a model: end the run with the message)."""


@dataclass(eq=False)
class CallFailed(KoptError):
    """A model gave no reply, and asking again, as far as that makes sense, did not help."""

    kind: FailureKind
    message: str
    """One sentence: what happened and what to do next. Holds no key."""
    status: int | None = None
    """The HTTP status, if there was one."""
    request_id: str | None = None
    retry_after_s: float | None = None
    """How long the service asked to wait, seconds."""
    may_cost: bool = False
    """Whether the service had begun to answer, so that it may have to be paid."""

    def __str__(self) -> str:
        """Return the message with what to name when asking the provider about it."""
        return self.message + (f" (request {self.request_id})" if self.request_id else "")


class BudgetSpent(KoptError):
    """A call was not made: its worst case does not fit what is left of the run's budget."""


class Stopped(KoptError):
    """The run is being stopped: nothing is begun, waited for or recorded any more."""


_LOOK_EVERY_S = 0.1  # a thread that waits for something else looks this often


class Halt:
    """A stop signal, set once by the main thread and checked by every thread that waits."""

    def __init__(self) -> None:
        """Make a signal that is not set."""
        self._event = threading.Event()

    def stop(self) -> None:
        """End all waiting, for good."""
        self._event.set()

    @property
    def is_stopped(self) -> bool:
        """Whether the run is being stopped."""
        return self._event.is_set()

    def check(self) -> None:
        """Raise if the signal is set.

        Raises:
            Stopped: The run is being stopped.
        """
        if self._event.is_set():
            raise Stopped("the run is being stopped")

    def wait(self, seconds: float) -> None:
        """Wait for `seconds`.

        Raises:
            Stopped: The run is being stopped, before or meanwhile.
        """
        self._event.wait(seconds)
        self.check()

    def wait_on(self, changed: threading.Condition, seconds: float = _LOOK_EVERY_S) -> None:
        """Wait for a notification from other threads, for a moment at most.

        Raises:
            Stopped: The run is being stopped.
        """
        changed.wait(min(seconds, _LOOK_EVERY_S))
        self.check()
