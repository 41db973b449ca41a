"""A call between its reservation and its end, and the waiting of others for that end."""

import logging
import threading
from dataclasses import dataclass

from .call_errors import CallFailed
from .halt import Halt
from .ledger import Ledger, Settlement

logger = logging.getLogger(__name__)


@dataclass
class OpenCall:
    """One open row of the ledger, to be closed once."""

    id: str
    """Of the row: that of the call, with #2 if it is asked a second time."""
    ledger: Ledger
    reserved_microusd: int
    is_open: bool = True

    def settle(self, settlement: Settlement) -> None:
        """Close it with its reply."""
        self.ledger.settle(self.id, settlement)
        self.is_open = False
        if settlement.microusd > self.reserved_microusd:
            logger.warning(
                "call %s cost %d micro-USD, more than the %d that were its worst case:"
                " the provider counts otherwise than kopt expects",
                *(self.id, settlement.microusd, self.reserved_microusd),
            )

    def fail(self, failure: CallFailed) -> None:
        """Close it without one."""
        self.ledger.fail(self.id, failure)
        self.is_open = False

    def abandon(self, halt: Halt) -> None:
        """Close it if nobody has; after a stop the process that takes the run up does."""
        if self.is_open and not halt.is_stopped:
            message = "the call ended without a reply or a reason"
            self.fail(CallFailed(kind="us", message=message, may_cost=True))


class CallEnds:
    """Counts the calls that have ended: each may have given something back to the budget."""

    def __init__(self) -> None:
        """Begin at none."""
        self._changed = threading.Condition()  # guards the count
        self._count = 0

    @property
    def count(self) -> int:
        """How many have ended."""
        with self._changed:
            return self._count

    def add(self) -> None:
        """Tell everyone who waits that one more has."""
        with self._changed:
            self._count += 1
            self._changed.notify_all()

    def wait_beyond(self, count: int, halt: Halt) -> None:
        """Wait until more than `count` have.

        Raises:
            Stopped: The run is being stopped.
        """
        with self._changed:
            while self._count == count:
                halt.wait_on(self._changed)
