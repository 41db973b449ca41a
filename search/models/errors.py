"""Why a call of a model gave no reply.

KoptError
├── CallFailed    no answer; `kind` says who can mend it
├── BudgetSpent   the call was not made, because it might cost more than is left
└── Stopped       the run is being stopped; every wait for a model ends

What a model says is never an error: a refusal or a cut reply is a `ModelReply`.
"""

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
