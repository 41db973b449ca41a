"""Where calls are written down before and after they are made: the protocol and its records.

The run store keeps the real one (`call_store.py` has its SQL). One row is one attempt that may
have to be paid: a call whose stream broke stays in the ledger at its worst case, and is asked
again under the next id, `r2/b3/coder/0#2`.
"""

from dataclasses import dataclass
from typing import Protocol

from .call_errors import CallFailed
from .model import ModelRequest, Usage


@dataclass(frozen=True)
class Reservation:
    """A call that is about to be made, with the most that it can take from the budget."""

    request: ModelRequest
    request_sha: str
    """Its document among the artifacts."""
    request_bytes: int
    """Size of that document."""
    microusd: int
    """Worst case, 1e-6 USD (computed)."""
    tokens: int
    """Worst case: prompt and output."""


@dataclass(frozen=True)
class Settlement:
    """A call that was answered."""

    response_sha: str
    response_bytes: int
    microusd: int
    """What it costs, 1e-6 USD (computed from the usage and the table of prices)."""
    usage: Usage
    stop: str
    latency_s: float


@dataclass(frozen=True)
class CallDocuments:
    """Where request and reply of an answered call lie among the artifacts."""

    id: str
    request_sha: str
    response_sha: str


class Ledger(Protocol):
    """The calls of one run. May be used from any thread; each method is one transaction."""

    def find(self, call: str) -> CallDocuments | None:
        """Return the answered call of this id, whichever attempt it was."""
        ...

    def last_of(self, prefix: str) -> CallDocuments | None:
        """Return the answered call with the highest turn among the ids `prefix/N`."""
        ...

    def reserve(self, reservation: Reservation) -> str | None:
        """Return the id of the row under which the call may now be made.

        None: it does not fit as long as other calls hold their worst cases; try again when one of
        them has ended.

        Raises:
            BudgetSpent: It does not fit, and no call is open that could give something back.
        """
        ...

    def retry(self, row: str, failure: CallFailed, wait_s: float) -> None:
        """Note that the service turned the call away and will be asked again in `wait_s`."""
        ...

    def settle(self, row: str, settlement: Settlement) -> None:
        """Replace the worst case of an open row by what the call cost."""
        ...

    def fail(self, row: str, failure: CallFailed) -> None:
        """Close an open row without a reply: for nothing, or at its worst case if it may cost."""
        ...
